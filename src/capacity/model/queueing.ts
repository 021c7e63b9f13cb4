/**
 * Waiting in a line before `servers` servers with exponential times between arrivals and of service (M/M/c): Erlang's
 * second formula, and the exponential tail of the wait behind it. Real service times vary less, so waits are on the safe
 * side.
 */
export type Line = {
  servers: number;
  /** Busy share of all servers; at 1 or more the line grows without end. */
  utilization: number;
  /** Mean time that one takes, in seconds. */
  serviceSeconds: number;
};

/** The probability that an arrival has to wait. */
export function waitProbability({ servers, utilization }: Pick<Line, "servers" | "utilization">): number {
  if (utilization >= 1) return 1;
  const offered = utilization * servers;
  // Erlang's first formula by its recursion, which no factorial overflows.
  let blocking = 1;
  for (let n = 1; n <= servers; n++) blocking = (offered * blocking) / (n + offered * blocking);
  return blocking / (1 - utilization * (1 - blocking));
}

/** Seconds that the share `q` of all arrivals does not wait longer than. Infinite without a steady state. */
export function waitQuantile(line: Line, q: number): number {
  if (line.utilization >= 1) return Infinity;
  const waits = waitProbability(line);
  if (waits <= 1 - q) return 0;
  return (Math.log(waits / (1 - q)) * line.serviceSeconds) / (line.servers * (1 - line.utilization));
}
