/** The `k` greatest of the first `count` values; all of them where there are fewer. `values` is put into another order. */
export function kthGreatest(values: Float64Array, count: number, k: number): number {
  let low = 0;
  let high = count - 1;
  const wanted = Math.min(k, count) - 1;
  while (low < high) {
    const pivot = medianOfThree(values, low, high);
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] ?? 0) > pivot) left++;
      while ((values[right] ?? 0) < pivot) right--;
      if (left > right) break;
      const kept = values[left] ?? 0;
      values[left++] = values[right] ?? 0;
      values[right--] = kept;
    }
    if (wanted <= right) high = right;
    else if (wanted >= left) low = left;
    else break;
  }
  return values[wanted] ?? 0;
}

function medianOfThree(values: Float64Array, low: number, high: number): number {
  const a = values[low] ?? 0;
  const b = values[(low + high) >>> 1] ?? 0;
  const c = values[high] ?? 0;
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

/** The `count` first values in an order, in any order. `values` is put into another one. */
export function firstOf(values: Uint32Array, count: number, compare: (a: number, b: number) => number): Uint32Array {
  let low = 0;
  let high = values.length - 1;
  while (low < high && count > low && count <= high) {
    const pivot = values[(low + high) >>> 1] ?? 0;
    let left = low;
    let right = high;
    while (left <= right) {
      while (compare(values[left] ?? 0, pivot) < 0) left++;
      while (compare(values[right] ?? 0, pivot) > 0) right--;
      if (left > right) break;
      const kept = values[left] ?? 0;
      values[left++] = values[right] ?? 0;
      values[right--] = kept;
    }
    if (count - 1 <= right) high = right;
    else if (count - 1 >= left) low = left;
    else break;
  }
  return values.subarray(0, Math.max(0, count));
}
