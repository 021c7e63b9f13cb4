/** The part of WebAssembly that the program uses; the types of Node name the namespace only. */
declare namespace WebAssembly {
  class Memory {
    /** Sizes in pages of 64 KiB. Throws `RangeError` when there is no such memory to be had. */
    constructor(descriptor: { initial: number; maximum: number; shared?: boolean });
    readonly buffer: ArrayBuffer | SharedArrayBuffer;
    /** Adds so many pages; views of the buffer before are empty then. Throws `RangeError`. */
    grow(pages: number): number;
  }

  // oxlint-disable-next-line typescript/no-extraneous-class -- it has nothing else that the program uses
  class Module {
    /** Throws `CompileError` when this machine cannot run it. */
    constructor(bytes: Uint8Array);
  }

  class Instance {
    constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
    readonly exports: Readonly<Record<string, unknown>>;
  }
}
