import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import {
  CopyObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Metrics } from "../../../core/metrics.ts";
import type { Random } from "../../../core/random.ts";
import { InvalidObjectKey, ObjectChanged, ObjectNotFound, checkObjectKey, rangeOf } from "../objectstore.ts";
import type { CopyOptions, GetOptions, ListOptions, ObjectInfo, ObjectStore, PutOptions } from "../objectstore.ts";
import { BulkDelete } from "./bulk-delete.ts";
import { type S3Connection, makeS3Client } from "./client.ts";
import { factsOf } from "./facts.ts";
import { RequestFailure, type StorePlace } from "./failure.ts";
import { S3_LIMITS, type S3Limits } from "./limits.ts";
import { partsOfBytes, partsOfFile, putInParts, type PartSource } from "./multipart.ts";
import { readBody, verifyComposite } from "./read-body.ts";
import { type Attempt, ObjectStoreError, Requests } from "./requests.ts";

/**
 * Objects in a bucket of an S3 store.
 *
 * Every byte is checked on its way: a put carries a CRC-32 that the store verifies, a whole object is verified against
 * the checksum that the store kept, a range by its length and place (what a range holds is checked above, against the
 * checksum of the extent). Failures that may pass are tried again within a deadline (`requests.ts`); for those that
 * stay, the log and the start-up check say what is wrong and which setting it is (`failure.ts`).
 *
 * Keys that are no object keys of ours (folder marks of a console, hidden names) are not listed.
 */
export type S3StoreOptions = S3Connection & {
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  limits?: Partial<S3Limits>;
};

export type S3Store = ObjectStore & {
  /** Closes idle connections. Operations under way fail. */
  close(): void;
};

/** Opens the store; nothing is sent yet (`checkStore` tries it). */
export function openS3Store(options: S3StoreOptions): S3Store {
  const limits = { ...S3_LIMITS, ...options.limits };
  return new BucketStore(makeS3Client(options, limits), limits, options);
}

/** What a server copies with one request. */
const COPY_MAX_BYTES = 5 * 2 ** 30;

/** S3 answers one page of a listing with that many keys at most. */
const PAGE_KEYS = 1_000;

class BucketStore implements S3Store {
  readonly #client: S3Client;
  readonly #limits: S3Limits;
  readonly #place: StorePlace;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #requests: Requests;
  readonly #bulkDelete: BulkDelete;

  constructor(client: S3Client, limits: S3Limits, options: S3StoreOptions) {
    const { bucket, region, endpoint, credentials, log, metrics } = options;
    this.#client = client;
    this.#limits = limits;
    this.#place = { bucket, region, endpoint, accessKeyId: credentials?.accessKeyId };
    this.#place.bucket = bucket;
    this.#log = log;
    this.#metrics = metrics;
    this.#requests = new Requests({ ...options, place: this.#place, limits });
    this.#bulkDelete = new BulkDelete(client, this.#requests, this.#place);
  }

  async put(key: string, bytes: Uint8Array, options?: PutOptions): Promise<void> {
    checkObjectKey(key);
    const signal = options?.signal;
    if (bytes.length >= this.#limits.multipartBytes) return this.#putInParts(key, partsOfBytes(bytes), signal);
    await this.#putWhole(key, bytes, signal);
  }

  async putFile(key: string, path: string, options?: PutOptions): Promise<void> {
    checkObjectKey(key);
    const signal = options?.signal;
    signal?.throwIfAborted();
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      if (size >= this.#limits.multipartBytes) return await this.#putInParts(key, partsOfFile(file, size), signal);
      await this.#putWhole(key, await partsOfFile(file, size).read(0, size), signal);
    } finally {
      await file.close();
    }
  }

  async #putWhole(key: string, bytes: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    const operation = { kind: "put", what: `put ${key}`, sizeBytes: bytes.length, signal } as const;
    await this.#requests.run(operation, async (attempt) => {
      const command = new PutObjectCommand({ Bucket: this.#place.bucket, Key: key, Body: bytes });
      const { ETag } = await this.#client.send(command, { abortSignal: attempt.signal });
      // Every S3 store names what it took; any web server may say that all is well.
      if (ETag === undefined) throw new RequestFailure("NoStore", "the object was taken without an ETag");
    });
  }

  async copyFrom(source: ObjectStore, sourceKey: string, key: string, options: CopyOptions): Promise<boolean> {
    if (!(source instanceof BucketStore) || !this.#isSameServer(source)) return false;
    if (options.sizeBytes > COPY_MAX_BYTES) return false;
    checkObjectKey(key);
    const path = checkObjectKey(sourceKey).split("/").map(encodeURIComponent).join("/");
    const CopySource = `${source.#place.bucket}/${path}`;
    const operation = { kind: "put", what: `copy ${sourceKey} to ${key}`, ...options } as const;
    try {
      await this.#requests.run(operation, async (attempt) => {
        const command = new CopyObjectCommand({ Bucket: this.#place.bucket, Key: key, CopySource });
        const { CopyObjectResult } = await this.#client.send(command, { abortSignal: attempt.signal });
        if (CopyObjectResult?.ETag === undefined) throw new RequestFailure("NoStore", "the copy has no ETag");
      });
    } catch (error) {
      if (isMissing(error)) throw new ObjectNotFound(sourceKey);
      throw error;
    }
    return true;
  }

  async get(key: string, options?: GetOptions): Promise<Uint8Array<ArrayBuffer>> {
    checkObjectKey(key);
    const { start, end } = rangeOf(Number.MAX_SAFE_INTEGER, options);
    if (start === end) return this.#emptyRange(key);
    const range = { start, end: options?.length === undefined ? undefined : end };
    const asked = { key, range, identity: options?.identity };
    let bytes: Uint8Array<ArrayBuffer> | undefined;
    try {
      bytes = await this.#requests.run({ kind: "get", what: `get ${key}`, signal: options?.signal }, (attempt) =>
        this.#download(asked, attempt),
      );
    } catch (error) {
      if (isMissing(error)) throw new ObjectNotFound(key);
      throw error;
    }
    if (bytes === undefined) throw new ObjectChanged(key);
    return bytes;
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    checkObjectKey(key);
    try {
      return await this.#requests.run({ kind: "head", what: `look up ${key}` }, async (attempt) => {
        const command = new HeadObjectCommand({ Bucket: this.#place.bucket, Key: key });
        const { ContentLength, LastModified, ETag } = await this.#client.send(command, { abortSignal: attempt.signal });
        return infoOf(key, ContentLength, LastModified, ETag);
      });
    } catch (error) {
      if (!isMissing(error)) throw error;
      await this.#assertBucket();
      return undefined;
    }
  }

  async *list(prefix: string, options?: Pick<ListOptions, "startAfter">): AsyncGenerator<ObjectInfo> {
    const startAfter = options?.startAfter ?? "";
    let previous = Buffer.from(startAfter);
    let token: string | undefined;
    do {
      const page = await this.#page(prefix, startAfter, token);
      for (const { Key = "", Size, LastModified, ETag } of page.Contents ?? []) {
        const key = ownKey(Key, page.EncodingType === "url");
        if (key === undefined) continue;
        const current = Buffer.from(key);
        // Continuing after a key relies on the order, and so does whoever merges listings.
        if (Buffer.compare(previous, current) >= 0) throw new DisorderedListing(prefix, key, previous.toString());
        previous = current;
        yield infoOf(key, Size, LastModified, ETag);
      }
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }

  async delete(keys: readonly string[]): Promise<void> {
    await this.#bulkDelete.delete([...new Set(keys.map((key) => checkObjectKey(key)))]);
  }

  close(): void {
    this.#client.destroy();
  }

  #putInParts(key: string, source: PartSource, signal: AbortSignal | undefined): Promise<void> {
    const context = {
      client: this.#client,
      requests: this.#requests,
      bucket: this.#place.bucket,
      limits: this.#limits,
      log: this.#log,
    };
    return putInParts(context, key, source, signal);
  }

  /** Whether one server has both buckets, and knows this store by the same keys. */
  #isSameServer(source: BucketStore): boolean {
    const { region, endpoint, accessKeyId } = this.#place;
    const other = source.#place;
    return region === other.region && endpoint === other.endpoint && accessKeyId === other.accessKeyId;
  }

  /** No request can ask for no bytes; the object must be there all the same. */
  async #emptyRange(key: string): Promise<Uint8Array<ArrayBuffer>> {
    if ((await this.head(key)) === undefined) throw new ObjectNotFound(key);
    return new Uint8Array(0);
  }

  /** Undefined when the object is not the one that was asked for. */
  async #download({ key, range, identity }: Asked, attempt: Attempt): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const isWhole = range.start === 0 && range.end === undefined;
    const Range = `bytes=${range.start}-${range.end === undefined ? "" : range.end - 1}`;
    const command = new GetObjectCommand({
      Bucket: this.#place.bucket,
      Key: key,
      ...(isWhole ? {} : { Range }),
      ...(identity === undefined ? {} : { IfMatch: identity }),
    });
    let answer: GetObjectCommandOutput;
    try {
      answer = await this.#client.send(command, { abortSignal: attempt.signal });
    } catch (error) {
      // The range starts past the end.
      const { status } = factsOf(error);
      if (status === 416) return new Uint8Array(0);
      if (status === 412) return undefined;
      throw error;
    }
    // Also of a store that does not know the condition.
    if (identity !== undefined && answer.ETag !== identity) {
      if (answer.Body instanceof Readable) answer.Body.destroy();
      return undefined;
    }
    const sizeBytes = isWhole ? answer.ContentLength : rangeBytes(answer, range);
    if (sizeBytes === undefined || sizeBytes !== answer.ContentLength) {
      throw new RequestFailure("UnusableAnswer", "announced another length than what was asked for");
    }
    attempt.expect(sizeBytes);
    const bytes = await readBody(answer.Body, sizeBytes, attempt.signal);
    this.#metrics.objstoreBytes.inc({ direction: "in" }, bytes.length);
    if (isWhole && answer.ChecksumCRC32 !== undefined) {
      verifyComposite(bytes, this.#limits.partBytes, answer.ChecksumCRC32);
    }
    return bytes;
  }

  #page(prefix: string, startAfter: string, token: string | undefined): Promise<ListObjectsV2CommandOutput> {
    return this.#requests.run({ kind: "list", what: `list ${prefix}` }, async (attempt) => {
      const command = new ListObjectsV2Command({
        Bucket: this.#place.bucket,
        Prefix: prefix,
        MaxKeys: PAGE_KEYS,
        // XML cannot carry every character that a key of somebody else may hold.
        EncodingType: "url",
        ...(startAfter === "" ? {} : { StartAfter: startAfter }),
        ...(token === undefined ? {} : { ContinuationToken: token }),
      });
      const page = await this.#client.send(command, { abortSignal: attempt.signal });
      if ((page.IsTruncated === true) !== (page.NextContinuationToken !== undefined)) {
        throw new RequestFailure("UnusableAnswer", "does not say whether a listing goes on, and where");
      }
      return page;
    });
  }

  /** Absence means something only where the bucket is; that the answer about an object does not tell. */
  async #assertBucket(): Promise<void> {
    const { bucket } = this.#place;
    await this.#requests.run({ kind: "head", what: "look up the bucket" }, async (attempt) => {
      try {
        await this.#client.send(new HeadBucketCommand({ Bucket: bucket }), { abortSignal: attempt.signal });
      } catch (error) {
        const { status } = factsOf(error);
        if (status === 404) throw new RequestFailure("NoSuchBucket", "NoSuchBucket");
        // Whoever may not look at the bucket learns that there is one.
        if (status !== 403) throw error;
      }
    });
  }
}

/** From `start` to `end`, or to the end of the object. */
type Range = { start: number; end: number | undefined };
type Asked = { key: string; range: Range; identity: string | undefined };

/** Size of the part of the object that the store says it sends; undefined where that is not what was asked for. */
function rangeBytes({ ContentRange = "" }: GetObjectCommandOutput, range: Range): number | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(ContentRange);
  if (match === null) return undefined;
  const [first = 0, last = 0, objectBytes = 0] = match.slice(1).map(Number);
  const end = Math.min(range.end ?? objectBytes, objectBytes);
  return first === range.start && last === end - 1 ? end - first : undefined;
}

function isMissing(error: unknown): boolean {
  return error instanceof ObjectStoreError && error.failure.outcome === "not_found";
}

/** HTTP tells times in seconds, listings of some stores in more digits; both are to be the same. */
function infoOf(
  key: string,
  sizeBytes: number | undefined,
  modified: Date | undefined,
  etag: string | undefined,
): ObjectInfo {
  if (sizeBytes === undefined || modified === undefined || etag === undefined) {
    throw new RequestFailure("UnusableAnswer", `does not say the size, time and ETag of ${key}`);
  }
  return { key, sizeBytes, modifiedAtMs: Math.floor(modified.getTime() / 1_000) * 1_000, identity: etag };
}

/** The key in clear where it can be one of ours. */
function ownKey(listed: string, isEncoded: boolean): string | undefined {
  try {
    return checkObjectKey(isEncoded ? decodeURIComponent(listed.replaceAll("+", " ")) : listed);
  } catch (error) {
    if (error instanceof InvalidObjectKey || error instanceof URIError) return undefined;
    throw error;
  }
}

class DisorderedListing extends EngineError {
  constructor(prefix: string, key: string, previous: string) {
    super("unavailable", `the object store lists ${prefix} out of order: ${key} after ${previous}; it cannot be used`);
    this.name = "DisorderedListing";
  }
}
