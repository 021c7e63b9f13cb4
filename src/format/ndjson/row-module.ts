import { ROWS_MODULE } from "./wasm/module.ts";

/**
 * The module of `wasm/` on this thread: its functions, and its memory as views, which `grow` replaces.
 *
 * A machine without SIMD or without the address space for such memory has none, and a module that trapped is not used
 * again: scanners do without it, and the process says so once.
 */
export class RowModule {
  readonly functions: RowFunctions;
  bytes: Uint8Array = new Uint8Array(0);
  ints: Int32Array = new Int32Array(0);
  longs: BigInt64Array = new BigInt64Array(0);
  reals: Float64Array = new Float64Array(0);
  readonly #memory: WebAssembly.Memory;

  /** Throws when the machine cannot run the module. */
  constructor(binary: Uint8Array) {
    this.#memory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: MAX_PAGES });
    const imports = {
      env: { memory: this.#memory },
      host: { readReal: (start: number, end: number) => this.#real(start, end) },
    };
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(binary), imports);
    this.functions = exports as RowFunctions;
    this.#view();
  }

  /** Makes the memory at least so large; false when it may not be. */
  reserve(sizeBytes: number): boolean {
    const pages = Math.ceil((sizeBytes - this.bytes.length) / PAGE_BYTES);
    if (pages <= 0) return true;
    if (sizeBytes > MAX_PAGES * PAGE_BYTES) return false;
    try {
      this.#memory.grow(pages);
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
    this.#view();
    return true;
  }

  #view(): void {
    const { buffer } = this.#memory;
    this.bytes = new Uint8Array(buffer);
    this.ints = new Int32Array(buffer);
    this.longs = new BigInt64Array(buffer);
    this.reals = new Float64Array(buffer);
  }

  /** What the module cannot read itself: very long numbers, and those with large powers of ten. */
  #real(start: number, end: number): number {
    return Number(Buffer.from(this.bytes.buffer, start, end - start).toString("latin1"));
  }
}

/** See `wasm/rows.as`. */
export type RowFunctions = {
  reset: (table: number, steps: number, mask: number, waste: number, maxRows: number) => void;
  setTimes: (at: number, a: number, b: number) => void;
  addKey: (slot: number) => void;
  scan: (
    start: number,
    end: number,
    bit: number,
    columns: number,
    columnCount: number,
    arrivalNs: bigint,
    arrivals: number,
  ) => number;
};

const PAGE_BYTES = 64 * 1024;
const INITIAL_PAGES = 16;
/** 32 MiB on each thread that scans, which is what two thousand columns take; tables with more are read without it. */
const MAX_PAGES = 512;

let make = (): RowModule => new RowModule(Buffer.from(ROWS_MODULE, "base64"));
/** Undefined until it is asked for; null when there is none. */
let ours: RowModule | null | undefined;

/** The module of this thread; undefined when scanners must do without. */
export function rowModule(): RowModule | undefined {
  if (ours === undefined) {
    try {
      ours = make();
    } catch (error) {
      giveUpModule(error);
    }
  }
  return ours ?? undefined;
}

/** Nothing on this thread uses the module any more. */
export function giveUpModule(error: unknown): void {
  ours = null;
  process.emitWarning(`NDJSON is scanned without vector instructions, which is slower: ${String(error)}`);
}

/** For tests: lets this thread make its module anew, in that way; returns how it was made before. */
export function remakeModule(way: () => RowModule): () => RowModule {
  const before = make;
  make = way;
  ours = undefined;
  return before;
}
