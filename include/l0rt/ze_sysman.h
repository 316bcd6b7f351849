/* SPDX-License-Identifier: Apache-2.0 */
/* ze_sysman.h: system management: what tools ask of a device and its memory.
 * Names, values and layouts are those of the Level Zero specification (sysman, 1.0 to 1.17). Handles are the core's. */
#ifndef L0RT_ZE_SYSMAN_H
#define L0RT_ZE_SYSMAN_H

#include "l0rt/ze.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef ze_driver_handle_t zes_driver_handle_t;
typedef ze_device_handle_t zes_device_handle_t;
typedef struct _zes_mem_handle_t *zes_mem_handle_t;
typedef struct _zes_engine_handle_t *zes_engine_handle_t;
typedef struct _zes_freq_handle_t *zes_freq_handle_t;
typedef struct _zes_pwr_handle_t *zes_pwr_handle_t;
typedef struct _zes_temp_handle_t *zes_temp_handle_t;

#define ZES_STRING_PROPERTY_SIZE 64
#define ZES_MAX_UUID_SIZE 16 /* 1.8 */

typedef uint32_t zes_init_flags_t;

typedef enum {
  ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES = 0x1,
  ZES_STRUCTURE_TYPE_PCI_PROPERTIES = 0x2,
  ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES = 0x5,
  ZES_STRUCTURE_TYPE_FREQ_PROPERTIES = 0x9,
  ZES_STRUCTURE_TYPE_MEM_PROPERTIES = 0xb,
  ZES_STRUCTURE_TYPE_POWER_PROPERTIES = 0xd,
  ZES_STRUCTURE_TYPE_RAS_PROPERTIES = 0xf,
  ZES_STRUCTURE_TYPE_TEMP_PROPERTIES = 0x14,
  ZES_STRUCTURE_TYPE_DEVICE_STATE = 0x15,
  ZES_STRUCTURE_TYPE_PROCESS_STATE = 0x16,
  ZES_STRUCTURE_TYPE_PCI_STATE = 0x17,
  ZES_STRUCTURE_TYPE_FREQ_STATE = 0x1b,
  ZES_STRUCTURE_TYPE_MEM_STATE = 0x1e,
  ZES_STRUCTURE_TYPE_RAS_STATE = 0x22,
  ZES_STRUCTURE_TYPE_DEVICE_ECC_PROPERTIES = 0x26, /* 1.4 */
  ZES_STRUCTURE_TYPE_POWER_LIMIT_EXT_DESC = 0x27,  /* 1.4 */
  ZES_STRUCTURE_TYPE_DEVICE_EXT_PROPERTIES = 0x2d, /* 1.8 */
} zes_structure_type_t;

typedef enum {
  ZES_DEVICE_TYPE_GPU = 1, /* 1.8 */
} zes_device_type_t;

typedef uint32_t zes_engine_type_flags_t;
typedef enum {
  ZES_ENGINE_TYPE_FLAG_COMPUTE = 0x2,
  ZES_ENGINE_TYPE_FLAG_DMA = 0x10,
} zes_engine_type_flag_t;

typedef enum {
  ZES_MEM_TYPE_DDR = 1,
} zes_mem_type_t;

typedef enum {
  ZES_MEM_LOC_SYSTEM = 0,
  ZES_MEM_LOC_DEVICE = 1,
} zes_mem_loc_t;

typedef enum {
  ZES_MEM_HEALTH_UNKNOWN = 0,
  ZES_MEM_HEALTH_OK = 1,
} zes_mem_health_t;

typedef enum {
  ZES_PCI_LINK_STATUS_UNKNOWN = 0,
} zes_pci_link_status_t;

typedef struct { /* 1.8 */
  uint8_t id[ZES_MAX_UUID_SIZE];
} zes_uuid_t;

typedef struct {
  zes_structure_type_t stype;
  void *pNext;
  ze_device_properties_t core;
  uint32_t numSubdevices;
  char serialNumber[ZES_STRING_PROPERTY_SIZE];
  char boardNumber[ZES_STRING_PROPERTY_SIZE];
  char brandName[ZES_STRING_PROPERTY_SIZE];
  char modelName[ZES_STRING_PROPERTY_SIZE];
  char vendorName[ZES_STRING_PROPERTY_SIZE];
  char driverVersion[ZES_STRING_PROPERTY_SIZE];
} zes_device_properties_t;

typedef struct { /* 1.8 */
  zes_structure_type_t stype;
  void *pNext;
  zes_uuid_t uuid;
  zes_device_type_t type;
  uint32_t flags;
} zes_device_ext_properties_t;

typedef uint32_t zes_reset_reason_flags_t;
typedef enum {
  ZES_RESET_REASON_FLAG_WEDGED = 0x1,
} zes_reset_reason_flag_t;

typedef struct {
  zes_structure_type_t stype;
  const void *pNext;
  zes_reset_reason_flags_t reset;
  uint32_t repaired;
} zes_device_state_t;

typedef enum {
  ZES_RESET_TYPE_WARM = 0, /* 1.7 */
  ZES_RESET_TYPE_COLD = 1, /* 1.7 */
  ZES_RESET_TYPE_FLR = 2,  /* 1.7 */
} zes_reset_type_t;

typedef struct { /* 1.7 */
  zes_structure_type_t stype;
  void *pNext;
  ze_bool_t force;
  zes_reset_type_t resetType;
} zes_reset_properties_t;

typedef uint32_t zes_event_type_flags_t;
typedef enum {
  ZES_EVENT_TYPE_FLAG_FREQ_THROTTLED = 0x10,
  ZES_EVENT_TYPE_FLAG_DEVICE_RESET_REQUIRED = 0x4000,
} zes_event_type_flag_t;

typedef struct {
  zes_structure_type_t stype;
  const void *pNext;
  uint32_t processId;
  uint64_t memSize;
  uint64_t sharedSize;
  zes_engine_type_flags_t engines;
} zes_process_state_t;

typedef struct {
  uint32_t domain;
  uint32_t bus;
  uint32_t device;
  uint32_t function;
} zes_pci_address_t;

typedef struct {
  int32_t gen;
  int32_t width;
  int64_t maxBandwidth;
} zes_pci_speed_t;

typedef struct {
  zes_structure_type_t stype;
  void *pNext;
  zes_pci_address_t address;
  zes_pci_speed_t maxSpeed;
  ze_bool_t haveBandwidthCounters;
  ze_bool_t havePacketCounters;
  ze_bool_t haveReplayCounters;
} zes_pci_properties_t;

typedef struct {
  zes_structure_type_t stype;
  const void *pNext;
  zes_pci_link_status_t status;
  uint32_t qualityIssues;
  uint32_t stabilityIssues;
  zes_pci_speed_t speed;
} zes_pci_state_t;

typedef struct { /* microseconds; packets, bytes */
  uint64_t timestamp;
  uint64_t replayCounter;
  uint64_t packetCounter;
  uint64_t rxCounter;
  uint64_t txCounter;
  zes_pci_speed_t speed;
} zes_pci_stats_t;

typedef struct {
  zes_structure_type_t stype;
  void *pNext;
  zes_mem_type_t type;
  ze_bool_t onSubdevice;
  uint32_t subdeviceId;
  zes_mem_loc_t location;
  uint64_t physicalSize;
  int32_t busWidth;
  int32_t numChannels;
} zes_mem_properties_t;

typedef struct {
  zes_structure_type_t stype;
  const void *pNext;
  zes_mem_health_t health;
  uint64_t free;
  uint64_t size;
} zes_mem_state_t;

typedef struct { /* bytes, bytes a second, microseconds */
  uint64_t readCounter;
  uint64_t writeCounter;
  uint64_t maxBandwidth;
  uint64_t timestamp;
} zes_mem_bandwidth_t;

typedef enum {
  ZES_ENGINE_GROUP_ALL = 0,
  ZES_ENGINE_GROUP_COMPUTE_ALL = 1,
  ZES_ENGINE_GROUP_COPY_ALL = 3,
} zes_engine_group_t;

typedef struct {
  zes_structure_type_t stype;
  void *pNext;
  zes_engine_group_t type;
  ze_bool_t onSubdevice;
  uint32_t subdeviceId;
} zes_engine_properties_t;

typedef struct { /* microseconds */
  uint64_t activeTime;
  uint64_t timestamp;
} zes_engine_stats_t;

typedef enum {
  ZES_FREQ_DOMAIN_GPU = 0,
  ZES_FREQ_DOMAIN_MEMORY = 1,
} zes_freq_domain_t;

typedef struct { /* MHz */
  zes_structure_type_t stype;
  void *pNext;
  zes_freq_domain_t type;
  ze_bool_t onSubdevice;
  uint32_t subdeviceId;
  ze_bool_t canControl;
  ze_bool_t isThrottleEventSupported;
  double min;
  double max;
} zes_freq_properties_t;

typedef struct { /* MHz */
  double min;
  double max;
} zes_freq_range_t;

typedef struct { /* MHz, volts; negative: unknown */
  zes_structure_type_t stype;
  const void *pNext;
  double currentVoltage;
  double request;
  double tdp;
  double efficient;
  double actual;
  uint32_t throttleReasons;
} zes_freq_state_t;

typedef struct { /* milliwatts; -1: unknown */
  zes_structure_type_t stype;
  void *pNext;
  ze_bool_t onSubdevice;
  uint32_t subdeviceId;
  ze_bool_t canControl;
  ze_bool_t isEnergyThresholdSupported;
  int32_t defaultLimit;
  int32_t minLimit;
  int32_t maxLimit;
} zes_power_properties_t;

typedef struct { /* microjoules, microseconds */
  uint64_t energy;
  uint64_t timestamp;
} zes_power_energy_counter_t;

typedef struct { /* milliwatts, milliseconds */
  ze_bool_t enabled;
  int32_t power;
  int32_t interval;
} zes_power_sustained_limit_t;

typedef struct { /* milliwatts */
  ze_bool_t enabled;
  int32_t power;
} zes_power_burst_limit_t;

typedef struct { /* milliwatts; -1: unknown */
  int32_t powerAC;
  int32_t powerDC;
} zes_power_peak_limit_t;

typedef enum {
  ZES_POWER_LEVEL_SUSTAINED = 1,
} zes_power_level_t;

typedef enum {
  ZES_POWER_SOURCE_ANY = 0,
} zes_power_source_t;

typedef enum {
  ZES_LIMIT_UNIT_POWER = 2,
} zes_limit_unit_t;

typedef struct { /* 1.4; milliwatts, milliseconds */
  zes_structure_type_t stype;
  const void *pNext;
  zes_power_level_t level;
  zes_power_source_t source;
  zes_limit_unit_t limitUnit;
  ze_bool_t enabledStateLocked;
  ze_bool_t enabled;
  ze_bool_t intervalValueLocked;
  int32_t interval;
  ze_bool_t limitValueLocked;
  int32_t limit;
} zes_power_limit_ext_desc_t;

typedef enum {
  ZES_TEMP_SENSORS_GLOBAL = 0,
  ZES_TEMP_SENSORS_GPU = 1,
  ZES_TEMP_SENSORS_MEMORY = 2,
} zes_temp_sensors_t;

typedef struct { /* degrees Celsius */
  zes_structure_type_t stype;
  void *pNext;
  zes_temp_sensors_t type;
  ze_bool_t onSubdevice;
  uint32_t subdeviceId;
  double maxTemperature;
  ze_bool_t isCriticalTempSupported;
  ze_bool_t isThreshold1Supported;
  ze_bool_t isThreshold2Supported;
} zes_temp_properties_t;

typedef enum { /* 1.4 */
               ZES_DEVICE_ECC_STATE_UNAVAILABLE = 0,
               ZES_DEVICE_ECC_STATE_ENABLED = 1,
               ZES_DEVICE_ECC_STATE_DISABLED = 2,
} zes_device_ecc_state_t;

typedef enum { /* 1.4 */
               ZES_DEVICE_ACTION_NONE = 0,
} zes_device_action_t;

typedef struct { /* 1.4 */
  zes_structure_type_t stype;
  void *pNext;
  zes_device_ecc_state_t currentState;
  zes_device_ecc_state_t pendingState;
  zes_device_action_t pendingAction;
} zes_device_ecc_properties_t;

typedef enum {
  ZES_RAS_ERROR_TYPE_CORRECTABLE = 0,
  ZES_RAS_ERROR_TYPE_UNCORRECTABLE = 1,
} zes_ras_error_type_t;

#define ZES_MAX_RAS_ERROR_CATEGORY_COUNT 7

typedef struct {
  zes_structure_type_t stype;
  void *pNext;
  zes_ras_error_type_t type;
  ze_bool_t onSubdevice;
  uint32_t subdeviceId;
} zes_ras_properties_t;

typedef struct { /* by category: resets, programming, driver, compute, other, cache, display */
  zes_structure_type_t stype;
  const void *pNext;
  uint64_t category[ZES_MAX_RAS_ERROR_CATEGORY_COUNT];
} zes_ras_state_t;

#ifdef __cplusplus
}
#endif

#endif
