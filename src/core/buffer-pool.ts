/**
 * Large buffers that are used again, and read by several threads without a copy.
 *
 * Bodies and extents of a megabyte come and go by the hundred a second. As fresh ArrayBuffers each costs zeroing and
 * page faults, and all of them together count against the heap, which is collected in full again and again: a fifth of
 * the CPU of a loaded server. So they are SharedArrayBuffers, kept by size class.
 *
 * Those that are written to files start on a page, as writing past the page cache needs it. Such memory comes from
 * WebAssembly, at the price of 10 GiB of address space each, reserved and never used, and the garbage collector does
 * not see how large they are: what is dropped stays for long. So bodies, which may be large, have ordinary ones.
 *
 * Whoever takes a buffer gives it back once nobody, on any thread, will read it any more. One that is forgotten is only
 * collected; one that is given back too early would be corrupted, so where it is not certain, forget it.
 */

/** Below this a copy is cheaper than sharing. */
export const MIN_SHARED_BYTES = 64 * 1024;
/** Readable bytes behind the size that was asked for: scanners read whole words. */
const SLACK_BYTES = 16;
/** The largest that is kept: a body at its limit. Zeroing a fresh one of these holds the thread up for 30 ms. */
const MAX_KEPT_BYTES = 80 * 1024 * 1024;
/** Of either kind. */
const MAX_IDLE_BYTES = 160 * 1024 * 1024;
/** Buffers that nobody has taken for so long are let go: a burst of large bodies is no reason to stay large. */
const KEEP_MS = 20_000;
const WASM_PAGE_BYTES = 64 * 1024;

/** A buffer of at least the size; what it holds is whatever it held before. */
export function takeShared(sizeBytes: number): SharedArrayBuffer {
  return anywhere.take(sizeBytes);
}

/** The same, starting on a page of memory, unless the address space is too small for that. */
export function takePageAligned(sizeBytes: number): SharedArrayBuffer {
  return pageAligned.take(sizeBytes);
}

/**
 * Takes back the buffer of `bytes`, if it is a shared one; nobody may read it any more. It must be the very object that
 * was taken: one that has been to another thread and back is another object on the same memory.
 */
export function releaseShared(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (!(buffer instanceof SharedArrayBuffer)) return;
  if (!anywhere.takeBack(buffer) && !pageAligned.takeBack(buffer)) {
    throw new Error("a shared buffer was given back that nobody has");
  }
}

/** Whether the bytes start on a page, and the rest of their last page is in their buffer too. */
export function isPageAligned(bytes: Uint8Array): boolean {
  return bytes.byteOffset % WASM_PAGE_BYTES === 0 && allocatedOnPage.has(bytes.buffer);
}

/**
 * Copies `source` into `target` from `at` on; they are different buffers, and it fits.
 *
 * `TypedArray.prototype.set` copies into shared memory byte by byte unless both sides lie on whole words (V8's
 * `relaxed_memmove`, 4 GB/s); filling a Buffer with another one is a plain copy (30 GB/s).
 */
export function copyBytes(source: Uint8Array, target: Uint8Array, at: number): void {
  if (source.byteLength === 0) return;
  const end = at + source.byteLength;
  if (end > target.byteLength) throw new RangeError("the bytes do not fit where they are copied to");
  Buffer.from(target.buffer, target.byteOffset, target.byteLength).fill(source, at, end);
}

class Pool {
  readonly #allocate: (sizeBytes: number) => SharedArrayBuffer;
  readonly #idle = new Map<number, SharedArrayBuffer[]>();
  /** Buffers that somebody has: what is given back twice, or under another identity, would get two owners. */
  readonly #lent = new WeakSet<SharedArrayBuffer>();
  #idleBytes = 0;
  #lastTakenMs = 0;
  #watching = false;

  constructor(allocate: (sizeBytes: number) => SharedArrayBuffer) {
    this.#allocate = allocate;
  }

  take(sizeBytes: number): SharedArrayBuffer {
    const classBytes = classOf(sizeBytes + SLACK_BYTES);
    this.#lastTakenMs = performance.now();
    const kept = this.#idle.get(classBytes)?.pop();
    if (kept !== undefined) this.#idleBytes -= classBytes;
    const buffer = kept ?? this.#allocate(classBytes);
    this.#lent.add(buffer);
    return buffer;
  }

  /** False when nobody has this buffer. */
  takeBack(buffer: SharedArrayBuffer): boolean {
    if (!this.#lent.delete(buffer)) return false;
    const classBytes = buffer.byteLength;
    if (classBytes > MAX_KEPT_BYTES || this.#idleBytes + classBytes > MAX_IDLE_BYTES) return true;
    const kept = this.#idle.get(classBytes) ?? [];
    kept.push(buffer);
    this.#idle.set(classBytes, kept);
    this.#idleBytes += classBytes;
    if (!this.#watching) this.#watch();
    return true;
  }

  #watch(): void {
    this.#watching = true;
    setTimeout(() => this.#letGoWhenUnused(), KEEP_MS).unref();
  }

  #letGoWhenUnused(): void {
    this.#watching = false;
    if (this.#idleBytes === 0) return;
    if (performance.now() - this.#lastTakenMs < KEEP_MS) {
      this.#watch();
      return;
    }
    this.#idle.clear();
    this.#idleBytes = 0;
  }
}

/** Buffers that start on a page; an object on the same memory that has been to another thread is not known here. */
const allocatedOnPage = new WeakSet<ArrayBufferLike>();

function allocateOnPage(sizeBytes: number): SharedArrayBuffer {
  const pages = sizeBytes / WASM_PAGE_BYTES;
  try {
    const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    if (!(buffer instanceof SharedArrayBuffer)) throw new TypeError("shared memory is not shared");
    allocatedOnPage.add(buffer);
    return buffer;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // The address space is limited (`ulimit -v`): memory of any alignment will do.
    return new SharedArrayBuffer(sizeBytes);
  }
}

const anywhere = new Pool((sizeBytes) => new SharedArrayBuffer(sizeBytes));
const pageAligned = new Pool(allocateOnPage);

/** Size classes: four to each power of two, so that at most a quarter is lost. */
function classOf(sizeBytes: number): number {
  const step = Math.max(WASM_PAGE_BYTES, 2 ** Math.floor(Math.log2(sizeBytes)) / 4);
  return Math.ceil(sizeBytes / step) * step;
}
