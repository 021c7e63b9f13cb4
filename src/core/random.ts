import { randomFillSync } from "node:crypto";

/** Randomness, passed in (see `clock.ts`). */
export interface Random {
  /** Fills `target` with random bytes and returns it. */
  fill(target: Uint8Array): Uint8Array;
  /** A number in [0, 1). */
  next(): number;
}

/** Random bytes in stock: asking the system for each 16 bytes of an id takes longer than all the rest of making it. */
const STOCK_BYTES = 4_096;
const stock = new Uint8Array(STOCK_BYTES);
let used = STOCK_BYTES;

export const systemRandom: Random = {
  fill(target) {
    if (target.length > STOCK_BYTES) return randomFillSync(target);
    if (used + target.length > STOCK_BYTES) {
      randomFillSync(stock);
      used = 0;
    }
    target.set(stock.subarray(used, used + target.length));
    // What was given out is not kept.
    stock.fill(0, used, used + target.length);
    used += target.length;
    return target;
  },
  next: () => Math.random(),
};

/** A repeatable source for tests and simulations (splitmix32; not for secrets). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const nextUint32 = () => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  return {
    next: () => nextUint32() / 0x1_0000_0000,
    fill(target) {
      for (let i = 0; i < target.length; i++) target[i] = nextUint32() & 0xff;
      return target;
    },
  };
}
