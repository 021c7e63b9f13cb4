import { randomFillSync } from "node:crypto";

/** Randomness, passed in (see `clock.ts`). */
export interface Random {
  /** Fills `target` with random bytes and returns it. */
  fill(target: Uint8Array): Uint8Array;
  /** A number in [0, 1). */
  next(): number;
}

export const systemRandom: Random = {
  fill: (target) => randomFillSync(target),
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
