/**
 * How many queries fit into the memory of the machine. The allowances of queries that run together never pass a part of
 * it; the rest is for the server itself, for what idle processes hold, and for the page cache.
 */
export type QueryCapacity = {
  /** What one query may take. */
  memoryBytes: number;
  /** What all that run may take together. */
  totalMemoryBytes: number;
  /** Query processes at most; above the workers they are started only while long queries occupy those. */
  processes: number;
  /** Set when the budget that was asked for does not fit; says so for the log. */
  lowered: boolean;
};

const MEMORY_SHARE = 0.6;
/** More would run at the same time than any machine's disks and cores serve well. */
const MAX_EXTRA_PROCESSES = 6;
const MIN_MEMORY_BYTES = 1024 * 1024;

/**
 * `memoryBytes` is the configured budget; when nobody set it (`isDefault`) it shrinks until all workers fit, and when
 * somebody did, only to what is there at all: then fewer queries run at the same time.
 */
export function queryCapacity(options: {
  workers: number;
  memoryBytes: number;
  isDefault: boolean;
  availableBytes: number;
}): QueryCapacity {
  const { workers, isDefault } = options;
  const totalMemoryBytes = Math.max(MIN_MEMORY_BYTES, Math.floor(options.availableBytes * MEMORY_SHARE));
  const fitting = isDefault ? Math.floor(totalMemoryBytes / workers) : totalMemoryBytes;
  const memoryBytes = Math.max(MIN_MEMORY_BYTES, Math.min(options.memoryBytes, fitting));
  const together = Math.floor(totalMemoryBytes / memoryBytes);
  const processes = Math.max(workers, Math.min(together, workers + MAX_EXTRA_PROCESSES));
  return { memoryBytes, totalMemoryBytes, processes, lowered: memoryBytes < options.memoryBytes };
}
