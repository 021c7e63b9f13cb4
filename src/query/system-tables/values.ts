const NS_PER_MS = 1_000_000n;

export function nsOfMs(ms: number): bigint {
  return BigInt(Math.trunc(ms)) * NS_PER_MS;
}
