// A reader of WebDataset archives whose samples are NumPy arrays: KEY.NAME.npy in a .tar, where all files of one KEY stand
// side by side. Each KEY is an entry, each NAME feeds the graph input of that name.
//
//   cc -std=c11 -Wall -Wextra -Werror -O2 -fPIC -shared -I ../../abi npy_tar.c -o npy_tar.so
//   stepscope train MODEL.onnx --plugin ./npy_tar.so --data train.tar
//
// Formats: POSIX.1-1988 ustar; NumPy NEP 1, versions 1 and 2, little endian, C order.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepscope_plugin.h"

#define BLOCK 512
#define MOST_ARRAYS 64
#define MOST_AXES 8
#define NAME_BYTES 101

// What the header of an .npy file says.
typedef struct {
  int32_t dtype;
  uint32_t rank;
  int64_t dims[MOST_AXES];
  uint64_t bytes;  // of the elements
  long elements;   // where they begin, from the begin of the archive
} Npy;

typedef struct {
  FILE* file;
  long bytes;
  uint32_t array_count;
  ssp_array arrays[MOST_ARRAYS];
  char names[MOST_ARRAYS][NAME_BYTES];
  Npy types[MOST_ARRAYS];  // of the first entry; all others have the same
  uint64_t entry_count, capacity;
  long* places;  // [entry][MOST_ARRAYS]
} Archive;

static ssp_status fail(ssp_reader_context* c, const char* file, const char* what) {
  char text[NAME_BYTES + 256];
  snprintf(text, sizeof text, "file '%.100s': %s", file, what);
  return c->fail(c, text);
}

static int32_t dtype_of(const char* descr, uint64_t* bytes) {
  static const struct {
    const char* text;
    int32_t dtype;
    uint64_t bytes;
  } kTypes[] = {{"<f4", SSP_FLOAT32, 4}, {"<f8", SSP_FLOAT64, 8}, {"<f2", SSP_FLOAT16, 2}, {"<i8", SSP_INT64, 8},
                {"<i4", SSP_INT32, 4},   {"<i2", SSP_INT16, 2},   {"|i1", SSP_INT8, 1},    {"|u1", SSP_UINT8, 1},
                {"<u2", SSP_UINT16, 2},  {"<u4", SSP_UINT32, 4},  {"<u8", SSP_UINT64, 8},  {"|b1", SSP_BOOL, 1}};
  for (size_t i = 0; i < sizeof kTypes / sizeof *kTypes; ++i)
    if (strncmp(descr, kTypes[i].text, 3) == 0) {
      *bytes = kTypes[i].bytes;
      return kTypes[i].dtype;
    }
  return SSP_UNDEFINED;
}

// What stands behind 'KEY': in the header of an .npy file; NULL when nothing does.
static const char* behind(const char* header, const char* key) {
  const char* found = strstr(header, key);
  if (found == NULL) return NULL;
  found += strlen(key);
  while (*found == ' ' || *found == ':') ++found;
  return found;
}

// The file is at the begin of the .npy, which has `size` bytes.
static const char* read_npy(FILE* file, uint64_t size, Npy* npy) {
  unsigned char head[12];
  char header[4096];
  if (size < 12 || fread(head, 1, 10, file) != 10 || memcmp(head, "\x93NUMPY", 6) != 0) return "is no .npy file";
  uint64_t length = head[8] | (uint64_t)head[9] << 8, before = 10;
  if (head[6] > 1) {
    if (fread(head + 10, 1, 2, file) != 2) return "ends in its header";
    length |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
    before = 12;
  }
  if (length >= sizeof header || fread(header, 1, length, file) != length) return "has a header that is too long";
  header[length] = '\0';
  const char *descr = behind(header, "'descr'"), *order = behind(header, "'fortran_order'"),
             *shape = behind(header, "'shape'");
  uint64_t item = 0;
  npy->dtype = descr != NULL && *descr == '\'' ? dtype_of(descr + 1, &item) : SSP_UNDEFINED;
  if (npy->dtype == SSP_UNDEFINED) return "has an element type that this reader does not know";
  if (order == NULL || strncmp(order, "False", 5) != 0) return "is in Fortran order";
  if (shape == NULL || *shape != '(') return "has no shape";
  npy->rank = 0;
  npy->bytes = item;
  for (char* at = (char*)shape + 1; *at != ')' && *at != '\0';) {
    char* end = at;
    const long long extent = strtoll(at, &end, 10);
    if (end == at || extent < 0 || npy->rank == MOST_AXES) return "has a shape that this reader does not take";
    if (extent > 0 && npy->bytes > size / (uint64_t)extent) return "has fewer elements than its shape says";
    npy->dims[npy->rank++] = extent;
    npy->bytes *= (uint64_t)extent;
    for (at = end; *at == ',' || *at == ' ';) ++at;
  }
  if (before + length + npy->bytes > size) return "has fewer elements than its shape says";
  npy->elements = ftell(file);
  return NULL;
}

static int same_type(const Npy* a, const Npy* b) {
  return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static uint32_t index_of(const Archive* archive, const char* name) {
  uint32_t i = 0;
  while (i < archive->array_count && strcmp(archive->names[i], name) != 0) ++i;
  return i;
}

// A new entry whose arrays are not there yet.
static int add_entry(Archive* archive) {
  if (archive->entry_count == archive->capacity) {
    const uint64_t capacity = archive->capacity == 0 ? 64 : 2 * archive->capacity;
    long* places = realloc(archive->places, capacity * MOST_ARRAYS * sizeof *places);
    if (places == NULL) return 0;
    archive->places = places;
    archive->capacity = capacity;
  }
  for (uint32_t a = 0; a < MOST_ARRAYS; ++a) archive->places[archive->entry_count * MOST_ARRAYS + a] = -1;
  ++archive->entry_count;
  return 1;
}

// Whether the newest entry has all arrays of the first one.
static int is_complete(const Archive* archive) {
  for (uint32_t a = 0; archive->entry_count > 0 && a < archive->array_count; ++a)
    if (archive->places[(archive->entry_count - 1) * MOST_ARRAYS + a] < 0) return 0;
  return 1;
}

// One file of the archive. `key`: of the newest entry; replaced when the file begins another one.
static ssp_status add_file(ssp_reader_context* c, Archive* archive, const char* path, uint64_t size, char* key) {
  const char *slash = strrchr(path, '/'), *dot = strchr(slash == NULL ? path : slash, '.');
  const size_t length = strlen(path);
  if (dot == NULL || length < 4 || strcmp(path + length - 4, ".npy") != 0 || dot + 4 >= path + length)
    return fail(c, path, "expected a name such as KEY.NAME.npy");
  const size_t key_length = (size_t)(dot - path), name_length = length - 4 - key_length - 1;
  if (archive->entry_count == 0 || strlen(key) != key_length || strncmp(key, path, key_length) != 0) {
    if (!is_complete(archive)) return fail(c, key, "lacks an array that the first entry has");
    memcpy(key, path, key_length);
    key[key_length] = '\0';
    if (!add_entry(archive)) return c->fail(c, "no memory");
  }
  char name[NAME_BYTES];
  memcpy(name, dot + 1, name_length);
  name[name_length] = '\0';
  Npy npy;
  const char* wrong = read_npy(archive->file, size, &npy);
  if (wrong != NULL) return fail(c, path, wrong);
  if (npy.bytes > (uint64_t)(archive->bytes - npy.elements)) return fail(c, path, "ends before its elements");
  const uint32_t index = index_of(archive, name);
  if (index == archive->array_count) {
    if (archive->entry_count > 1 || index == MOST_ARRAYS) return fail(c, path, "is an array that the first entry lacks");
    strcpy(archive->names[index], name);
    archive->types[index] = npy;
    archive->arrays[index] = (ssp_array){.size = sizeof(ssp_array),
                                         .dtype = npy.dtype,
                                         .name = archive->names[index],
                                         .rank = npy.rank,
                                         .dims = archive->types[index].dims};
    ++archive->array_count;
  } else if (!same_type(&npy, &archive->types[index])) {
    return fail(c, path, "has another type or shape than in the first entry");
  }
  long* place = &archive->places[(archive->entry_count - 1) * MOST_ARRAYS + index];
  if (*place >= 0) return fail(c, path, "is there twice");
  *place = npy.elements;
  return SSP_OK;
}

static ssp_status scan(ssp_reader_context* c, Archive* archive) {
  char key[NAME_BYTES] = "";
  unsigned char header[BLOCK];
  if (fseek(archive->file, 0, SEEK_END) != 0) return c->fail(c, "is no file that can be searched");
  archive->bytes = ftell(archive->file);
  for (long at = 0;; at = ftell(archive->file)) {
    if (fseek(archive->file, at, SEEK_SET) != 0 || fread(header, 1, BLOCK, archive->file) != BLOCK || header[0] == '\0')
      break;  // two empty blocks end an archive
    if (memcmp(header + 257, "ustar", 5) != 0) return c->fail(c, "is no ustar archive");
    char path[NAME_BYTES] = "", digits[13] = "";
    memcpy(path, header, 100);
    memcpy(digits, header + 124, 12);
    const uint64_t size = strtoull(digits, NULL, 8);
    if (size > (uint64_t)1 << 40) return fail(c, path, "is too large");
    if ((header[156] == '0' || header[156] == '\0') && add_file(c, archive, path, size, key)) return SSP_ERROR;
    if (fseek(archive->file, at + BLOCK + (long)((size + BLOCK - 1) / BLOCK * BLOCK), SEEK_SET) != 0) break;
  }
  if (!is_complete(archive)) return fail(c, key, "lacks an array that the first entry has");
  return archive->entry_count == 0 ? c->fail(c, "holds no KEY.NAME.npy") : SSP_OK;
}

static void close_archive(void* instance) {
  Archive* archive = instance;
  fclose(archive->file);
  free(archive->places);
  free(archive);
}

static ssp_status open_archive(const ssp_reader* reader, ssp_reader_context* c, void** instance) {
  (void)reader;
  Archive* archive = calloc(1, sizeof *archive);
  if (archive == NULL) return c->fail(c, "no memory");
  archive->file = fopen(c->path, "rb");
  if (archive->file == NULL) {
    free(archive);
    return c->fail(c, "cannot be opened; expected a .tar of KEY.NAME.npy");
  }
  if (scan(c, archive)) {
    close_archive(archive);
    return SSP_ERROR;
  }
  c->entry_count = archive->entry_count;
  c->arrays = archive->arrays;
  c->array_count = archive->array_count;
  *instance = archive;
  return SSP_OK;
}

static ssp_status read_array(void* instance, ssp_reader_context* c, uint64_t entry, uint32_t array, void* data,
                             uint64_t bytes) {
  Archive* archive = instance;
  if (fseek(archive->file, archive->places[entry * MOST_ARRAYS + array], SEEK_SET) != 0 ||
      fread(data, 1, bytes, archive->file) != bytes)
    return fail(c, archive->names[array], "cannot be read any more");
  return SSP_OK;
}

static const ssp_reader kReader = {
    .size = sizeof(ssp_reader),
    .name = "tar of npy files",
    .suffix = ".tar",
    .open = open_archive,
    .read = read_array,
    .close = close_archive,
};
static const ssp_reader* const kReaders[] = {&kReader};

const ssp_plugin stepscope_plugin_entry = {
    .size = sizeof(ssp_plugin),
    .abi_major = SSP_ABI_MAJOR,
    .abi_minor = SSP_ABI_MINOR,
    .name = "npy_tar",
    .version = "1.0.0",
    .doc = "reads WebDataset archives of NumPy arrays",
    .readers = kReaders,
    .reader_count = 1,
};
