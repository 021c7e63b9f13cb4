/** The part of WebAssembly that the program uses; the types of Node name the namespace only. */
declare namespace WebAssembly {
  class Memory {
    /** Sizes in pages of 64 KiB. Throws `RangeError` when there is no such memory to be had. */
    constructor(descriptor: { initial: number; maximum: number; shared: boolean });
    readonly buffer: ArrayBuffer | SharedArrayBuffer;
  }
}
