/**
 * Calls `listener` with the next signal that asks this process to stop. Until then, or until the function that this
 * returns is called, the process does not end by one.
 */
export function onStopSignal(listener: (signal: NodeJS.Signals) => void): () => void {
  const off = () => void process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
  const onSignal = (signal: NodeJS.Signals) => {
    off();
    listener(signal);
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  return off;
}

/** The next signal that asks this process to stop. Until then the process does not end by one. */
export function nextStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => void onStopSignal(resolve));
}
