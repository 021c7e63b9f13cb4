import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
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
import { compositeOf } from "./read-body.ts";
import type { Attempt, Requests } from "./requests.ts";

export type MultipartContext = { client: S3Client; requests: Requests; bucket: string; limits: S3Limits; log: Log };

/** Where the bytes of an object come from; every part of it is in memory only while it is on its way. */
export type PartSource = {
  sizeBytes: number;
  /** The bytes of `[start, end)`; rejects when they are not there. */
  read(start: number, end: number): Promise<Uint8Array>;
};

export function partsOfBytes(bytes: Uint8Array): PartSource {
  return { sizeBytes: bytes.length, read: async (start, end) => bytes.subarray(start, end) };
}

/** Of a file that stays open meanwhile. */
export function partsOfFile(file: FileHandle, sizeBytes: number): PartSource {
  return {
    sizeBytes,
    read: async (start, end) => {
      const bytes = Buffer.allocUnsafeSlow(end - start);
      for (let filled = 0; filled < bytes.length;) {
        const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled);
        if (bytesRead === 0) throw new Error("the file became shorter while it was uploaded");
        filled += bytesRead;
      }
      return bytes;
    },
  };
}

/** `sums` are the CRC-32s of the parts, as far as they have been read. */
type Upload = { key: string; source: PartSource; uploadId: string; sums: number[] };

/**
 * Uploads an object in parts. It exists whole once this resolves; when it fails, the parts are removed, or a warning
 * names the upload that was left (a lifecycle rule of the bucket for incomplete uploads catches what is left by a
 * process that died).
 */
export async function putInParts(
  context: MultipartContext,
  key: string,
  source: PartSource,
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
  const upload: Upload = { key, source, uploadId, sums: [] };
  try {
    const parts = await uploadParts(context, upload, signal);
    await requests.run({ kind: "multipart", what, signal }, (attempt) => complete(context, upload, parts, attempt));
  } catch (error) {
    await abandon(context, upload);
    throw error;
  }
}

/**
 * Settles only when no part is under way any more: one that arrived after the end of the upload would stay. For the same
 * reason a part that is under way is not cut when another fails: the store may have all of it, and be writing.
 */
async function uploadParts(
  context: MultipartContext,
  upload: Upload,
  signal: AbortSignal | undefined,
): Promise<CompletedPart[]> {
  const { partBytes, concurrentParts } = context.limits;
  const slots = new Semaphore(concurrentParts);
  // After the first failure no other part begins.
  const failed = new AbortController();
  const uploads = Array.from({ length: Math.ceil(upload.source.sizeBytes / partBytes) }, (_, index) =>
    slots.run(async () => {
      failed.signal.throwIfAborted();
      try {
        return await uploadPart(context, upload, index, signal);
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
  { key, source, uploadId, sums }: Upload,
  index: number,
  signal: AbortSignal | undefined,
): Promise<CompletedPart> {
  signal?.throwIfAborted();
  const part = await source.read(index * partBytes, Math.min((index + 1) * partBytes, source.sizeBytes));
  sums[index] = crc32(part);
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
  { client, bucket }: MultipartContext,
  { key, uploadId, sums }: Upload,
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
    if (ChecksumCRC32 !== compositeOf(sums)) throw error;
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
