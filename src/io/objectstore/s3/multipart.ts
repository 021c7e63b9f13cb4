import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  type CompletedPart,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  type S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { Semaphore } from "../../../core/concurrency.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { RequestFailure } from "./failure.ts";
import { factsOf } from "./facts.ts";
import type { S3Limits } from "./limits.ts";
import { compositeChecksum } from "./read-body.ts";
import type { Attempt, Requests } from "./requests.ts";

export type MultipartContext = { client: S3Client; requests: Requests; bucket: string; limits: S3Limits; log: Log };

type Upload = { key: string; bytes: Uint8Array; uploadId: string };

/**
 * Uploads an object in parts. It exists whole once this resolves; when it fails, the parts are removed, or a warning
 * names the upload that was left (a lifecycle rule of the bucket for incomplete uploads catches what is left by a
 * process that died).
 */
export async function putInParts(
  context: MultipartContext,
  key: string,
  bytes: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { client, requests, bucket } = context;
  const what = `put ${key}`;
  const uploadId = await requests.run({ kind: "multipart", what, signal }, async (attempt) => {
    const command = new CreateMultipartUploadCommand({ Bucket: bucket, Key: key, ChecksumAlgorithm: "CRC32" });
    const { UploadId } = await client.send(command, { abortSignal: attempt.signal });
    if (UploadId === undefined) throw new RequestFailure("UnusableAnswer", "began an upload without an id");
    return UploadId;
  });
  const upload = { key, bytes, uploadId };
  try {
    const parts = await uploadParts(context, upload, signal);
    await requests.run({ kind: "multipart", what, signal }, (attempt) => complete(context, upload, parts, attempt));
  } catch (error) {
    await abandon(context, upload);
    throw error;
  }
}

/** Settles only when no part is under way any more: one that arrived after the end of the upload would stay. */
async function uploadParts(
  context: MultipartContext,
  upload: Upload,
  signal: AbortSignal | undefined,
): Promise<CompletedPart[]> {
  const { partBytes, concurrentParts } = context.limits;
  const slots = new Semaphore(concurrentParts);
  // The first failure ends the others.
  const failed = new AbortController();
  const until = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal]);
  const uploads = Array.from({ length: Math.ceil(upload.bytes.length / partBytes) }, (_, index) =>
    slots.run(async () => {
      try {
        return await uploadPart(context, upload, index, until);
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    }),
  );
  await Promise.allSettled(uploads);
  failed.signal.throwIfAborted();
  return Promise.all(uploads);
}

async function uploadPart(
  { client, requests, bucket, limits: { partBytes } }: MultipartContext,
  { key, bytes, uploadId }: Upload,
  index: number,
  signal: AbortSignal,
): Promise<CompletedPart> {
  const part = bytes.subarray(index * partBytes, (index + 1) * partBytes);
  const operation = { kind: "multipart", what: `put ${key}`, sizeBytes: part.length, signal } as const;
  return requests.run(operation, async (attempt) => {
    const place = { Bucket: bucket, Key: key, UploadId: uploadId, PartNumber: index + 1 };
    const command = new UploadPartCommand({ ...place, Body: part, ChecksumAlgorithm: "CRC32" });
    const { ETag, ChecksumCRC32 } = await client.send(command, { abortSignal: attempt.signal });
    if (ETag === undefined) throw new RequestFailure("UnusableAnswer", "took a part without naming it");
    return { PartNumber: index + 1, ETag, ...(ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 }) };
  });
}

async function complete(
  { client, bucket, limits }: MultipartContext,
  { key, bytes, uploadId }: Upload,
  Parts: CompletedPart[],
  attempt: Attempt,
): Promise<void> {
  const place = { Bucket: bucket, Key: key };
  try {
    const command = new CompleteMultipartUploadCommand({ ...place, UploadId: uploadId, MultipartUpload: { Parts } });
    await client.send(command, { abortSignal: attempt.signal });
  } catch (error) {
    if (attempt.number === 1 || factsOf(error).name !== "NoSuchUpload") throw error;
    // The answer to an earlier attempt may have been lost after it had its effect.
    const head = new HeadObjectCommand({ ...place, ChecksumMode: "ENABLED" });
    const { ChecksumCRC32 } = await client.send(head, { abortSignal: attempt.signal });
    if (ChecksumCRC32 !== compositeChecksum(bytes, limits.partBytes)) throw error;
  }
}

async function abandon({ client, requests, bucket, log }: MultipartContext, { key, uploadId }: Upload): Promise<void> {
  try {
    // Not with the caller's signal: that may be what ended the upload.
    await requests.run({ kind: "multipart", what: `abandon the upload of ${key}` }, async (attempt) => {
      const command = new AbortMultipartUploadCommand({ Bucket: bucket, Key: key, UploadId: uploadId });
      await client.send(command, { abortSignal: attempt.signal });
    });
  } catch (error) {
    if (factsOf(error).name === "NoSuchUpload" || factsOf(fieldCause(error)).name === "NoSuchUpload") return;
    log.warn({ key, uploadId, problem: messageOf(error) }, "parts of an upload that failed stay in the bucket");
  }
}

function fieldCause(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
