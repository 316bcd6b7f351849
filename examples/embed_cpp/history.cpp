/* SPDX-License-Identifier: Apache-2.0 */
/* A history of values, each with as much device memory as it asks for, on a stream of its own. */
#include <pybind11/pybind11.h>

#include <deque>
#include <memory_resource>
#include <vector>

#include <l0rt/l0rt.hpp>

namespace py = pybind11;

class history {
 public:
  explicit history(std::size_t most) : most_(most), stream_(l0rt::pool_stream()) {}

  /* Appends a block of `nbytes` times `value`; the oldest block is dropped when there are too many. */
  void append(int value, std::size_t nbytes) {
    l0rt::stream_guard guard(stream_); /* what is allocated and filled here is ordered by this stream */
    l0rt::buffer block(nbytes);
    l0rt::fill(block.data(), value, nbytes);
    blocks_.push_back(std::move(block));
    if (blocks_.size() > most_) blocks_.pop_front();
  }

  /* Returns the sum of the first bytes of all blocks, which come to pinned memory first. */
  long total() const {
    l0rt::host_memory_resource pinned;
    std::pmr::vector<unsigned char> heads(blocks_.size(), &pinned);
    for (std::size_t i = 0; i < heads.size(); i++) l0rt::copy(&heads[i], blocks_[i].data(), 1, stream_);
    l0rt::event done;
    done.record(stream_);
    done.synchronize();
    long sum = 0;
    for (unsigned char head : heads) sum += head;
    return sum;
  }

  std::size_t size() const { return blocks_.size(); }

 private:
  std::size_t most_;
  l0rt::stream stream_;
  std::deque<l0rt::buffer> blocks_;
};

PYBIND11_MODULE(history, module) {
  try {
    l0rt::import();
  } catch (const l0rt::import_error &) {
    throw py::error_already_set();
  }
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const l0rt::error &failure) { /* the exception is set already */
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, failure.what());
    }
  });
  using without_gil = py::call_guard<py::gil_scoped_release>;
  py::class_<history>(module, "History")
      .def(py::init<std::size_t>(), py::arg("most"))
      .def("append", &history::append, py::arg("value"), py::arg("nbytes"), without_gil())
      .def("total", &history::total, without_gil())
      .def("__len__", &history::size);
}
