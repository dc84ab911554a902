/* A fake libnvidia-ml.so.1 that answers from a profile: the file named by FAKE_NVML_PROFILE. Written from the layouts that pynvml declares.
 *
 * Profile: lines `key = value`, later lines win. Keys: init, driver, count; gpu.N.KEY, gpu.N.link.L.KEY, pair.A.B.KEY with A < B; N, L, A, B may be *.
 * Values: a number, a text, `!15` (the call returns error 15), `hang` (the call never returns), `crash` (SIGSEGV). A key that is absent: error 3,
 * "not supported". Compiled with -DOLD_DRIVER it lacks the functions that older drivers lack.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, SMALL = 7, VERSION = 25, LINES = 4096, WIDTH = 128 };

static struct { char key[WIDTH], value[WIDTH]; } lines[LINES];
static int line_count;

static void load(void) {
    const char *path = getenv("FAKE_NVML_PROFILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) { fprintf(stderr, "fake NVML: no profile %s\n", path ? path : "(FAKE_NVML_PROFILE is not set)"); abort(); }
    char text[2 * WIDTH];
    line_count = 0;
    while (fgets(text, sizeof text, file)) {
        if (line_count == LINES) { fprintf(stderr, "fake NVML: more than %d lines\n", LINES); abort(); }
        if (sscanf(text, " %127[^= \n] = %127[^\n]", lines[line_count].key, lines[line_count].value) == 2) line_count++;
    }
    fclose(file);
}

static const char *find(const char *key) {
    for (int i = line_count; i-- > 0;)
        if (!strcmp(lines[i].key, key)) return lines[i].value;
    return NULL;
}

/* OK with the text of the first of three keys that is there, else the error that the profile or its silence asks for. */
static int answer(const char *keys[3], const char **text) {
    *text = NULL;
    for (int i = 0; i < 3 && !*text; i++) *text = find(keys[i]);
    if (!*text) return NOT_SUPPORTED;
    if (!strcmp(*text, "hang")) for (;;) pause();
    if (!strcmp(*text, "crash")) raise(SIGSEGV);
    return **text == '!' ? atoi(*text + 1) : OK;
}

static int gpu_text(const void *device, const char *name, const char **text) {
    char one[WIDTH], any[WIDTH];
    snprintf(one, WIDTH, "gpu.%ld.%s", (long)(intptr_t)device - 1, name);
    snprintf(any, WIDTH, "gpu.*.%s", name);
    return answer((const char *[3]){one, any, any}, text);
}

static int gpu_number(const void *device, const char *name, long long *number) {
    const char *text;
    int code = gpu_text(device, name, &text);
    if (!code) *number = strtoll(text, NULL, 0);
    return code;
}

static int gpu_uint(const void *device, const char *name, unsigned *out) {
    long long number;
    int code = gpu_number(device, name, &number);
    if (!code) *out = (unsigned)number;
    return code;
}

static int gpu_string(const void *device, const char *name, char *out, unsigned size) {
    const char *text;
    int code = gpu_text(device, name, &text);
    if (code) return code;
    if (strlen(text) >= size) return SMALL;
    strcpy(out, text);
    return OK;
}

static int link_text(const void *device, unsigned link, const char *name, const char **text) {
    long long count;
    int code = gpu_number(device, "links", &count);
    if (code) return code;
    if (link >= count) return INVALID;
    char one[WIDTH], same[WIDTH], any[WIDTH];
    snprintf(one, WIDTH, "gpu.%ld.link.%u.%s", (long)(intptr_t)device - 1, link, name);
    snprintf(same, WIDTH, "gpu.%ld.link.*.%s", (long)(intptr_t)device - 1, name);
    snprintf(any, WIDTH, "gpu.*.link.*.%s", name);
    return answer((const char *[3]){one, same, any}, text);
}

static int link_uint(const void *device, unsigned link, const char *name, unsigned *out) {
    const char *text;
    int code = link_text(device, link, name, &text);
    if (!code) *out = (unsigned)strtoull(text, NULL, 0);
    return code;
}

static int pair_uint(const void *a, const void *b, const char *name, unsigned *out) {
    long first = (long)(intptr_t)a - 1, second = (long)(intptr_t)b - 1;
    char one[WIDTH], any[WIDTH];
    snprintf(one, WIDTH, "pair.%ld.%ld.%s", first < second ? first : second, first < second ? second : first, name);
    snprintf(any, WIDTH, "pair.*.*.%s", name);
    const char *text;
    int code = answer((const char *[3]){one, any, any}, &text);
    if (!code) *out = (unsigned)strtoul(text, NULL, 0);
    return code;
}

/* ---- the machine ---- */

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    load();
    const char *text;
    int code = answer((const char *[3]){"init", "init", "init"}, &text);
    return code == NOT_SUPPORTED && !text ? OK : code;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    const char *text;
    int code = answer((const char *[3]){"driver", "driver", "driver"}, &text);
    if (!code) snprintf(out, size, "%s", text);
    return code;
}

int nvmlDeviceGetCount_v2(unsigned *out) {
    const char *text;
    int code = answer((const char *[3]){"count", "count", "count"}, &text);
    if (!code) *out = (unsigned)atoi(text);
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    const char *text;
    *device = (void *)(intptr_t)(index + 1);
    int code = gpu_text(*device, "handle", &text);
    return code == NOT_SUPPORTED && !text ? OK : code;
}

/* ---- one GPU ---- */

int nvmlDeviceGetName(void *device, char *out, unsigned size) { return gpu_string(device, "name", out, size); }
int nvmlDeviceGetUUID(void *device, char *out, unsigned size) { return gpu_string(device, "uuid", out, size); }
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *out) { return gpu_uint(device, "pcie.max_gen", out); }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *out) { return gpu_uint(device, "pcie.max_width", out); }
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *out) { return gpu_uint(device, "pcie.gen", out); }
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *out) { return gpu_uint(device, "pcie.width", out); }

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;

static void fill_pci(const char *text, Pci *out) {
    memset(out, 0, sizeof *out);
    sscanf(text, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    snprintf(out->bus_id, sizeof out->bus_id, "%s", text);
}

int nvmlDeviceGetPciInfo_v3(void *device, Pci *out) {
    const char *text;
    int code = gpu_text(device, "pci", &text);
    if (!code) fill_pci(text, out);
    return code;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3]) {
    long long total;
    int code = gpu_number(device, "memory", &total);
    if (!code) out[0] = out[1] = (unsigned long long)total, out[2] = 0;
    return code;
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    int code = gpu_uint(device, "mig", current);
    if (!code) *pending = *current;
    return code;
}

int nvmlDeviceGetVirtualizationMode(void *device, unsigned *out) { return gpu_uint(device, "virtualization", out); }

#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryAffinity(void *device, unsigned size, unsigned long *out, unsigned scope) {
    long long mask;
    (void)scope;
    int code = gpu_number(device, "numa_mask", &mask);
    if (!code) memset(out, 0, size * sizeof *out), out[0] = (unsigned long)mask;
    return code;
}

typedef struct { unsigned version, best; unsigned char mode; } BwMode;

int nvmlDeviceGetNvlinkBwMode(void *device, BwMode *out) {
    long long mode;
    int code = gpu_number(device, "bw_mode", &mode);
    if (!code) out->mode = (unsigned char)mode;
    return code;
}

/* ---- the fabric: `state` is one byte, and the three after it are whatever was there ---- */

static int fabric(void *device, unsigned char *at, int version) {
    long long newest = 3;
    gpu_number(device, "fabric.newest", &newest);
    if (version > newest) return VERSION;
    unsigned state, status = 0, clique = 0, health = 0, summary = 0;
    int code = gpu_uint(device, "fabric.state", &state);
    if (code) return code;
    const char *uuid = NULL;
    gpu_uint(device, "fabric.status", &status);
    gpu_uint(device, "fabric.clique", &clique);
    gpu_uint(device, "fabric.health", &health);
    gpu_uint(device, "fabric.summary", &summary);
    memset(at, 0, 16);
    if (!gpu_text(device, "fabric.uuid", &uuid))
        for (int i = 0; i < 16; i++) sscanf(uuid + 2 * i, "%2hhx", at + i);
    memcpy(at + 16, &status, 4);
    memcpy(at + 20, &clique, 4);
    memset(at + 24, 0xAB, 4);
    at[24] = (unsigned char)state;
    if (version >= 2) memcpy(at + 28, &health, 4);
    if (version >= 3) at[32] = (unsigned char)summary;
    return OK;
}

int nvmlDeviceGetGpuFabricInfo(void *device, unsigned char *out) { return fabric(device, out, 1); }
int nvmlDeviceGetGpuFabricInfoV(void *device, unsigned char *out) {
    unsigned version;
    memcpy(&version, out, 4);
    if (version != 0x02000024 && version != 0x03000028) return VERSION;
    return fabric(device, out + 4, (int)(version >> 24));
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *out) { return link_uint(device, link, "remote_type", out); }

/* ---- fields: 91 link count, 164 MB/s of a link, 165 state of a link ---- */

typedef struct { unsigned field, scope; long long time, latency; unsigned type, code; unsigned long long value; } Field;

int nvmlDeviceGetFieldValues(void *device, int count, Field *fields) {
    for (int i = 0; i < count; i++) {
        unsigned value = 0;
        Field *one = fields + i;
        one->code = (unsigned)(one->field == 91    ? gpu_uint(device, "link_count", &value)
                               : one->field == 164 ? link_uint(device, one->scope, "mbps", &value)
                               : one->field == 165 ? link_uint(device, one->scope, "field_state", &value)
                                                   : NOT_SUPPORTED);
        one->type = 1, one->value = value;
    }
    return OK;
}
#endif

/* ---- one NVLink ---- */

int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *out) { return link_uint(device, link, "state", out); }
int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *out) { return link_uint(device, link, "version", out); }
int nvmlDeviceGetNvLinkCapability(void *device, unsigned link, unsigned capability, unsigned *out) {
    return capability ? INVALID : link_uint(device, link, "p2p", out);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, Pci *out) {
    const char *text;
    int code = link_text(device, link, "remote", &text);
    if (!code) fill_pci(text, out);
    return code;
}

/* ---- two GPUs ---- */

int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, unsigned *out) { return pair_uint(a, b, "ancestor", out); }
int nvmlDeviceGetP2PStatus(void *a, void *b, unsigned index, unsigned *out) {
    return index == 0 ? pair_uint(a, b, "p2p_read", out) : index == 2 ? pair_uint(a, b, "p2p_nvlink", out) : NOT_SUPPORTED;
}
