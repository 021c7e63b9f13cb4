/** How hard the S3 driver tries, and how much it does at once. Tests make these small. */
export type S3Limits = {
  /** Requests under way at once, and sockets: what comes on top waits here, in order. */
  concurrentRequests: number;
  /** Requests made for one operation (or one page, batch or part of it) before it fails. */
  attempts: number;
  /** The first pause between attempts; it doubles from there, and each is cut by up to a half at random. */
  backoffMs: number;
  backoffMaxMs: number;
  /** A connection that takes longer is given up. */
  connectTimeoutMs: number;
  /** Time for one request, on top of what its bytes take at the slowest rate that is put up with. */
  attemptTimeoutMs: number;
  /** The same for the operation: waiting for a connection, all its attempts and the pauses between them. */
  deadlineMs: number;
  slowestBytesPerSecond: number;
  /** Objects of this size and more are uploaded in parts. */
  multipartBytes: number;
  /** Size of all parts but the last; S3 takes none below 5 MiB. */
  partBytes: number;
  /** Parts of one object under way at once. */
  concurrentParts: number;
};

const MIB = 2 ** 20;

export const S3_LIMITS: S3Limits = {
  concurrentRequests: 64,
  attempts: 8,
  backoffMs: 100,
  backoffMaxMs: 5_000,
  connectTimeoutMs: 3_000,
  attemptTimeoutMs: 15_000,
  deadlineMs: 60_000,
  slowestBytesPerSecond: MIB / 4,
  multipartBytes: 16 * MIB,
  partBytes: 8 * MIB,
  concurrentParts: 4,
};

/** Milliseconds that `sizeBytes` may take on the way. */
export function transferMs(limits: S3Limits, sizeBytes: number): number {
  return Math.ceil((sizeBytes * 1_000) / limits.slowestBytesPerSecond);
}
