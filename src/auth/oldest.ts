/** Takes out what a map has had for longest, until it is no larger than `maxEntries`. */
export function dropOldest(map: Map<unknown, unknown>, maxEntries: number): void {
  for (const key of map.keys()) {
    if (map.size <= maxEntries) return;
    map.delete(key);
  }
}
