import { useEffect, useState } from "preact/hooks";

/** A part of the pages that is loaded when it is first needed; `load` loads it once. */
export type LazyPart<T> = { load: () => Promise<T>; loaded: () => T | undefined };

export function lazyPart<T>(fetchPart: () => Promise<T>): LazyPart<T> {
  let part: T | undefined;
  let loading: Promise<T> | undefined;
  const load = async () => {
    loading ??= fetchPart();
    try {
      return (part = await loading);
    } catch (error) {
      // The next one tries again.
      loading = undefined;
      throw error;
    }
  };
  return { load, loaded: () => part };
}

/** The part, once it is there; `hasFailed` where it could not be loaded, as after a release under an open page. */
export function usePart<T>(part: LazyPart<T>, isWanted = true): { part: T | undefined; hasFailed: boolean } {
  const [, draw] = useState(0);
  const [failed, setFailed] = useState<LazyPart<T> | undefined>();
  useEffect(() => {
    if (!isWanted || part.loaded() !== undefined) return;
    let isGone = false;
    part.load().then(
      () => isGone || draw((count) => count + 1),
      () => isGone || setFailed(() => part),
    );
    return () => void (isGone = true);
  }, [part, isWanted]);
  return { part: part.loaded(), hasFailed: failed === part && part.loaded() === undefined };
}

/** Runs `action` when the browser has nothing else to do, for what will be needed soon. */
export function whenIdle(action: () => void): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(action, { timeout: 3_000 });
  else queueMicrotask(action);
}
