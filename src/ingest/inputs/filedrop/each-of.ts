/**
 * Does the task for each item, `most` at a time, in their order of beginning. After the first failure, or once the signal
 * is aborted, none is begun any more; rejects with it when those under way have ended.
 */
export async function eachOf<T>(
  items: AsyncIterable<T>,
  { most, signal }: { most: number; signal: AbortSignal },
  task: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.asyncIterator]();
  const stop = new AbortController();
  const over = AbortSignal.any([signal, stop.signal]);
  const work = async (): Promise<void> => {
    try {
      while (!over.aborted) {
        const next = await iterator.next();
        if (next.done === true) break;
        await task(next.value);
      }
    } finally {
      stop.abort();
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: most }, work));
  await iterator.return?.();
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  signal.throwIfAborted();
}
