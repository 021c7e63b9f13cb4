/** A row of a system table, by the names of its columns; undefined for NULL. */
export type SystemRow = Readonly<Record<string, SystemValue>>;
export type SystemValue = string | number | bigint | undefined;

const NS_PER_MS = 1_000_000n;

export function nsOfMs(ms: number): bigint {
  return BigInt(Math.trunc(ms)) * NS_PER_MS;
}
