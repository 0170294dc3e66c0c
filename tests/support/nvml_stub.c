/* A libnvidia-ml.so.1 for tests: answers from a small text file, named by NVML_STUB, that is read again when it changes.

   gpus N                          how many (default 8)
   driver TEXT / cuda N            versions
   init CODE                       what nvmlInit returns
   epoch N                         when it changes, the driver was unloaded: all is uninitialized until the next nvmlInit
   set GPU NAME VALUE              a number: util, memory_used, memory_total, power, temperature, ... ; GPU may be *
   name GPU TEXT                   a GPU's name
   error FUNCTION GPU CODE         what a function returns; FUNCTION and GPU may be *
   hang FUNCTION GPU SECONDS       how long a function takes
   lost GPU                        off the bus
   event SEQ GPU TYPE DATA         an event, delivered once for each SEQ, in the order of SEQ
   process GPU PID BYTES           a process that computes; one line each
   mig GPU GI CI UUID USED TOTAL   an instance of a GPU in MIG mode

   A function that is to be missing is renamed by the compiler: -DnvmlX=absent_nvmlX. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;
enum { MAX_GPUS = 16, MAX_RULES = 512, MAX_NAMES = 32 };
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10, LOST = 15 };

struct device { int index, mig; };
struct rule { char function[80]; int gpu; double value; };
struct process { int gpu; u32 pid; u64 bytes; };
struct mig { int gpu; u32 gi, ci; char uuid[80]; u64 used, total; };
struct event { u64 seq; int gpu; u64 type, data; };
struct setting { int gpu; char name[40]; double value; };

static struct device devices[MAX_GPUS], instances[MAX_RULES];
static struct rule errors[MAX_RULES], hangs[MAX_RULES];
static struct process processes[MAX_RULES];
static struct mig migs[MAX_RULES];
static struct event events[MAX_RULES];
static struct setting settings[MAX_RULES];
static char names[MAX_GPUS][64];
static int n_gpus, n_errors, n_hangs, n_processes, n_migs, n_events, n_settings, init_code, lost[MAX_GPUS];
static char driver[80];
static int cuda;
static u64 epoch, initialized_in, delivered, registered;
static int initialized;
static struct stat seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int gpu_of(const char *word) { return strcmp(word, "*") ? atoi(word) : -1; }

static void read_line(char *line) {
    char a[80], b[80], c[200], field[40];
    double v;
    struct mig m;
    struct event e;
    struct process p;
    if (sscanf(line, "gpus %d", &n_gpus) == 1 || sscanf(line, "cuda %d", &cuda) == 1) return;
    if (sscanf(line, "init %d", &init_code) == 1 || sscanf(line, "epoch %llu", &epoch) == 1) return;
    if (sscanf(line, "driver %79s", driver) == 1) return;
    if (sscanf(line, "set %79s %39s %lf", a, field, &v) == 3 && n_settings < MAX_RULES) {
        struct setting *s = &settings[n_settings++];
        s->gpu = gpu_of(a), s->value = v, strcpy(s->name, field);
    } else if (sscanf(line, "name %79s %199[^\n]", a, c) == 2) {
        for (int i = 0; i < MAX_GPUS; i++)
            if (gpu_of(a) < 0 || gpu_of(a) == i) snprintf(names[i], sizeof names[i], "%.63s", c);
    } else if (sscanf(line, "error %79s %79s %lf", a, b, &v) == 3 && n_errors < MAX_RULES) {
        struct rule *r = &errors[n_errors++];
        r->gpu = gpu_of(b), r->value = v, strcpy(r->function, a);
    } else if (sscanf(line, "hang %79s %79s %lf", a, b, &v) == 3 && n_hangs < MAX_RULES) {
        struct rule *r = &hangs[n_hangs++];
        r->gpu = gpu_of(b), r->value = v, strcpy(r->function, a);
    } else if (sscanf(line, "lost %79s", a) == 1) {
        lost[atoi(a) % MAX_GPUS] = 1;
    } else if (sscanf(line, "event %llu %d %lli %llu", &e.seq, &e.gpu, (long long *)&e.type, &e.data) == 4) {
        if (n_events < MAX_RULES) events[n_events++] = e;
    } else if (sscanf(line, "process %d %u %llu", &p.gpu, &p.pid, &p.bytes) == 3) {
        if (n_processes < MAX_RULES) processes[n_processes++] = p;
    } else if (sscanf(line, "mig %d %u %u %79s %llu %llu", &m.gpu, &m.gi, &m.ci, m.uuid, &m.used, &m.total) == 6) {
        if (n_migs < MAX_RULES) migs[n_migs++] = m;
    }
}

static void refresh(void) {
    const char *path = getenv("NVML_STUB");
    struct stat now = {0};
    char line[512];
    if (path) stat(path, &now);
    if (n_gpus && now.st_ino == seen.st_ino && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec && now.st_size == seen.st_size)
        return;
    seen = now;
    n_gpus = 8, cuda = 12040, init_code = 0;
    n_errors = n_hangs = n_processes = n_migs = n_events = n_settings = 0;
    memset(lost, 0, sizeof lost);
    strcpy(driver, "550.54.15");
    for (int i = 0; i < MAX_GPUS; i++) strcpy(names[i], "NVIDIA H100 80GB HBM3"), devices[i] = (struct device){i, -1};
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return;
    while (fgets(line, sizeof line, file)) read_line(line);
    fclose(file);
    for (int i = 0; i < n_migs; i++) instances[i] = (struct device){migs[i].gpu, i};
}

static double value_of(int gpu, const char *name, double otherwise) {
    for (int i = n_settings - 1; i >= 0; i--)
        if ((settings[i].gpu < 0 || settings[i].gpu == gpu) && !strcmp(settings[i].name, name)) return settings[i].value;
    return otherwise;
}

/* What every function does first: take in the file, then hang, fail or go on. */
static int enter(const char *function, int gpu) {
    double seconds = 0;
    int code = OK;
    pthread_mutex_lock(&lock);
    refresh();
    for (int i = 0; i < n_hangs; i++)
        if (!strcmp(hangs[i].function, function) && (hangs[i].gpu < 0 || hangs[i].gpu == gpu)) seconds = hangs[i].value;
    if (!initialized || initialized_in != epoch) code = UNINITIALIZED;
    if (!code && gpu >= 0 && gpu < MAX_GPUS && lost[gpu]) code = LOST;
    for (int i = 0; i < n_errors && !code; i++) {
        int named = !strcmp(errors[i].function, "*") || !strcmp(errors[i].function, function);
        if (named && (errors[i].gpu < 0 || errors[i].gpu == gpu)) code = (int)errors[i].value;
    }
    pthread_mutex_unlock(&lock);
    if (seconds > 0) {
        struct timespec pause = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
        nanosleep(&pause, NULL);
    }
    return code;
}

#define ENTER(gpu) do { int code_ = enter(__func__, gpu); if (code_) return code_; } while (0)
#define ENTER_FOR(d) do { if (!(d)) return INVALID; ENTER((d)->index); } while (0)
#define NUMBER(function, type, field, otherwise) \
    int function(struct device *d, type *out) { \
        ENTER_FOR(d); \
        *out = (type)value_of(d->index, field, otherwise); \
        return OK; \
    }

int nvmlInitWithFlags(u32 flags) {
    double seconds = 0;
    (void)flags;
    pthread_mutex_lock(&lock);
    refresh();
    for (int i = 0; i < n_hangs; i++) if (!strcmp(hangs[i].function, __func__)) seconds = hangs[i].value;
    int code = init_code;
    if (!code) initialized = 1, initialized_in = epoch;
    pthread_mutex_unlock(&lock);
    if (seconds > 0) sleep((u32)seconds);
    return code;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { ENTER(-1); initialized = 0; return OK; }
const char *nvmlErrorString(int code) { (void)code; return "stub error"; }

int nvmlSystemGetDriverVersion(char *out, u32 size) { ENTER(-1); snprintf(out, size, "%s", driver); return OK; }
int nvmlSystemGetNVMLVersion(char *out, u32 size) { ENTER(-1); snprintf(out, size, "12.%s", driver); return OK; }
int nvmlSystemGetCudaDriverVersion(int *out) { ENTER(-1); *out = cuda; return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { ENTER(-1); *out = cuda; return OK; }
int nvmlDeviceGetCount_v2(u32 *out) { ENTER(-1); *out = (u32)n_gpus; return OK; }

int nvmlDeviceGetHandleByIndex_v2(u32 index, struct device **out) {
    ENTER((int)index);
    if (index >= (u32)n_gpus) return INVALID;
    *out = &devices[index];
    return OK;
}
static void uuid_of(int index, char *out, u32 size) {
    snprintf(out, size, "GPU-%08x-1111-2222-3333-%012x", 0xa0000000u + (u32)index, index);
}
int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **out) {
    char own[96];
    ENTER(-1);
    for (int i = 0; i < n_gpus; i++) {
        uuid_of(i, own, sizeof own);
        if (!strcmp(own, uuid)) return *out = &devices[i], OK;
    }
    for (int i = 0; i < n_migs; i++) if (!strcmp(migs[i].uuid, uuid)) return *out = &instances[i], OK;
    return NOT_FOUND;
}
int nvmlDeviceGetIndex(struct device *d, u32 *out) { ENTER_FOR(d); *out = (u32)d->index; return OK; }
int nvmlDeviceGetName(struct device *d, char *out, u32 size) {
    ENTER_FOR(d);
    if (d->mig < 0) snprintf(out, size, "%s", names[d->index]);
    else snprintf(out, size, "%s MIG 1g.10gb", names[d->index]);
    return OK;
}
int nvmlDeviceGetUUID(struct device *d, char *out, u32 size) {
    ENTER_FOR(d);
    if (d->mig < 0) uuid_of(d->index, out, size);
    else snprintf(out, size, "%s", migs[d->mig].uuid);
    return OK;
}
struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(struct device *d, struct pci *out) {
    ENTER_FOR(d);
    memset(out, 0, sizeof *out);
    out->bus = 0x10u + (u32)d->index;
    snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return OK;
}

struct memory { u64 total, free, used; };
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
static u64 used(struct device *d) {
    return d->mig >= 0 ? migs[d->mig].used : (u64)value_of(d->index, "memory_used", 1e9 * (d->index + 1));
}
static u64 total(struct device *d) {
    return d->mig >= 0 ? migs[d->mig].total : (u64)value_of(d->index, "memory_total", 85899345920.0);
}
int nvmlDeviceGetMemoryInfo(struct device *d, struct memory *out) {
    ENTER_FOR(d);
    *out = (struct memory){total(d), total(d) - used(d), used(d) + 500000000};
    return OK;
}
int nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory_v2 *out) {
    ENTER_FOR(d);
    *out = (struct memory_v2){out->version, total(d), 500000000, total(d) - used(d), used(d)};
    return OK;
}
struct utilization { u32 gpu, memory; };
int nvmlDeviceGetUtilizationRates(struct device *d, struct utilization *out) {
    ENTER_FOR(d);
    if (d->mig >= 0) return NOT_SUPPORTED;
    out->gpu = (u32)value_of(d->index, "util", 90 + d->index);
    out->memory = (u32)value_of(d->index, "memory_util", 40);
    return OK;
}
NUMBER(nvmlDeviceGetPowerUsage, u32, "power", 400000 + d->index * 1000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, u32, "power_limit", 700000)
NUMBER(nvmlDeviceGetPowerManagementLimit, u32, "power_limit", 700000)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "reasons", 0)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "reasons", 0)
NUMBER(nvmlDeviceGetPerformanceState, u32, "pstate", 0)
NUMBER(nvmlDeviceGetComputeMode, u32, "compute_mode", 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, u32, "max_migs", 7)
int nvmlDeviceGetTemperature(struct device *d, u32 sensor, u32 *out) {
    ENTER_FOR(d);
    *out = (u32)value_of(d->index, "temperature", 50 + d->index);
    return sensor ? INVALID : OK;
}
int nvmlDeviceGetClockInfo(struct device *d, u32 type, u32 *out) {
    ENTER_FOR(d);
    *out = (u32)value_of(d->index, type == 2 ? "memory_clock" : "clock", 1755);
    return OK;
}
static double ecc(int gpu, u32 type, u32 counter) {
    static const char *const fields[] = {"ecc_corrected", "ecc_corrected_total", "ecc_uncorrected", "ecc_uncorrected_total"};
    return value_of(gpu, fields[(type & 1) * 2 + (counter & 1)], 0);
}
int nvmlDeviceGetTotalEccErrors(struct device *d, u32 type, u32 counter, u64 *out) {
    ENTER_FOR(d);
    *out = (u64)ecc(d->index, type, counter);
    return OK;
}
int nvmlDeviceGetRemappedRows(struct device *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failure) {
    ENTER_FOR(d);
    *corrected = (u32)value_of(d->index, "remapped_corrected", 0);
    *uncorrected = (u32)value_of(d->index, "remapped_uncorrected", 0);
    *pending = (u32)value_of(d->index, "remap_pending", 0);
    *failure = (u32)value_of(d->index, "remap_failed", 0);
    return OK;
}
int nvmlDeviceGetPcieThroughput(struct device *d, u32 counter, u32 *out) {
    ENTER_FOR(d);
    *out = (u32)value_of(d->index, counter ? "pcie_rx_kib" : "pcie_tx_kib", 1000);
    return OK;
}

/* Counters grow with time at the rate that is set: bytes per second for PCIe, KiB per second and link for NVLink. */
static u64 grown(int gpu, const char *name, double otherwise) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)(value_of(gpu, name, otherwise) * (now.tv_sec + now.tv_nsec / 1e9));
}
struct field { u32 id, scope; long long timestamp, latency; u32 type, code; union { double d; u64 u; u32 i; } value; };
static int field(struct device *d, struct field *f) {
    int links = (int)value_of(d->index, "links", 18);
    f->type = 3;
    if (f->id == 91) return f->type = 1, f->value.i = (u32)links, links ? OK : NOT_SUPPORTED;
    if (f->id >= 3 && f->id <= 6) return f->value.u = (u64)ecc(d->index, (f->id - 3) & 1, (f->id - 3) >> 1), OK;
    if (f->id >= 142 && f->id <= 145) {
        static const char *const rows[] = {"remapped_corrected", "remapped_uncorrected", "remap_pending", "remap_failed"};
        return f->value.u = (u64)value_of(d->index, rows[f->id - 142], 0), OK;
    }
    if (f->id == 197) return f->value.u = grown(d->index, "pcie_tx", 2e9), OK;
    if (f->id == 198) return f->value.u = grown(d->index, "pcie_rx", 3e9), OK;
    if ((f->id == 138 || f->id == 139) && f->scope < (u32)links)
        return f->value.u = grown(d->index, f->id == 138 ? "nvlink_tx" : "nvlink_rx", 1e6), OK;
    return NOT_SUPPORTED;
}
int nvmlDeviceGetFieldValues(struct device *d, int count, struct field *values) {
    ENTER_FOR(d);
    for (int i = 0; i < count; i++) {
        char key[40];
        snprintf(key, sizeof key, "field_%u", values[i].id);
        values[i].code = (u32)value_of(d->index, key, 0);
        if (!values[i].code) values[i].code = (u32)field(d, &values[i]);
    }
    return OK;
}

struct process_v2 { u32 pid; u64 bytes; u32 gi, ci; };
static int running(struct device *d, u32 *count, struct process_v2 *out) {
    u32 found = 0;
    for (int i = 0; i < n_processes; i++) {
        if (processes[i].gpu != d->index) continue;
        if (out && found < *count) out[found] = (struct process_v2){processes[i].pid, processes[i].bytes, ~0u, ~0u};
        found++;
    }
    int code = found > (out ? *count : 0) ? TOO_SMALL : OK;
    *count = found;
    return code;
}
int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, u32 *count, struct process_v2 *out) {
    ENTER_FOR(d);
    return running(d, count, out);
}
int nvmlDeviceGetComputeRunningProcesses_v2(struct device *d, u32 *count, struct process_v2 *out) {
    ENTER_FOR(d);
    return running(d, count, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(struct device *d, u32 *count, struct process_v2 *out) {
    (void)out;
    ENTER_FOR(d);
    *count = 0;
    return OK;
}

int nvmlDeviceGetMigMode(struct device *d, u32 *current, u32 *pending) {
    ENTER_FOR(d);
    *current = *pending = (u32)value_of(d->index, "mig_mode", 0);
    for (int i = 0; i < n_migs; i++) if (migs[i].gpu == d->index) *current = *pending = 1;
    return OK;
}
int nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, u32 place, struct device **out) {
    ENTER_FOR(d);
    for (int i = 0; i < n_migs; i++)
        if (migs[i].gpu == d->index && place-- == 0) return *out = &instances[i], OK;
    return NOT_FOUND;
}
int nvmlDeviceIsMigDeviceHandle(struct device *d, u32 *out) { ENTER_FOR(d); *out = d->mig >= 0; return OK; }
int nvmlDeviceGetGpuInstanceId(struct device *d, u32 *out) {
    ENTER_FOR(d);
    if (d->mig < 0) return NOT_SUPPORTED;
    *out = migs[d->mig].gi;
    return OK;
}
int nvmlDeviceGetComputeInstanceId(struct device *d, u32 *out) {
    ENTER_FOR(d);
    if (d->mig < 0) return NOT_SUPPORTED;
    *out = migs[d->mig].ci;
    return OK;
}

struct event_data { struct device *device; u64 type, data; u32 gi, ci; };
int nvmlEventSetCreate(void **out) { ENTER(-1); *out = &registered; return OK; }
int nvmlEventSetFree(void *set) { (void)set; return OK; }
int nvmlDeviceGetSupportedEventTypes(struct device *d, u64 *out) {
    ENTER_FOR(d);
    *out = (u64)value_of(d->index, "event_types", 0x1f);
    return OK;
}
int nvmlDeviceRegisterEvents(struct device *d, u64 types, void *set) {
    (void)set;
    ENTER_FOR(d);
    registered |= 1ull << d->index;
    return types ? OK : INVALID;
}
int nvmlEventSetWait_v2(void *set, struct event_data *out, u32 milliseconds) {
    (void)set;
    for (u32 waited = 0;; waited += 50) {
        ENTER(-1);
        pthread_mutex_lock(&lock);
        for (int i = 0; i < n_events; i++) {
            if (events[i].seq <= delivered || !(registered >> events[i].gpu & 1)) continue;
            delivered = events[i].seq;
            *out = (struct event_data){&devices[events[i].gpu], events[i].type, events[i].data, ~0u, ~0u};
            pthread_mutex_unlock(&lock);
            return OK;
        }
        pthread_mutex_unlock(&lock);
        if (waited >= milliseconds) return TIMEOUT;
        usleep(50000);
    }
}
