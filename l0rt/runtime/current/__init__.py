# SPDX-License-Identifier: Apache-2.0
from l0rt._base.libraries import share

share(__path__, __name__)
