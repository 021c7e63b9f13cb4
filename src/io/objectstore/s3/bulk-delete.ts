import { DeleteObjectCommand, DeleteObjectsCommand, type S3Client } from "@aws-sdk/client-s3";
import { EngineError, messageOf } from "../../../core/errors.ts";
import { factsOf } from "./facts.ts";
import { type StorePlace, failureOf } from "./failure.ts";
import { ObjectStoreError, type Requests } from "./requests.ts";

/** S3's own limit. */
const BATCH_KEYS = 1_000;
/** Keys that the message of a failure names. */
const KEYS_SHOWN = 3;

type Refused = { key: string; error: unknown };

/**
 * Deletes objects, a thousand with one request where the store can do that and one by one where it cannot. Missing ones
 * are ignored. All are tried before a failure is thrown.
 */
export class BulkDelete {
  readonly #client: S3Client;
  readonly #requests: Requests;
  readonly #place: StorePlace;
  #oneByOne = false;

  constructor(client: S3Client, requests: Requests, place: StorePlace) {
    this.#client = client;
    this.#requests = requests;
    this.#place = place;
  }

  async delete(keys: readonly string[]): Promise<void> {
    const batches: string[][] = [];
    for (let at = 0; at < keys.length; at += BATCH_KEYS) batches.push(keys.slice(at, at + BATCH_KEYS));
    const refused = (await Promise.all(batches.map((batch) => this.#deleteBatch(batch)))).flat();
    const [first] = refused;
    if (first === undefined) return;
    if (keys.length === 1) throw first.error;
    throw failureOfAll(keys.length, refused);
  }

  async #deleteBatch(keys: readonly string[]): Promise<Refused[]> {
    if (this.#oneByOne || keys.length === 1) return this.#deleteEach(keys);
    let left = keys;
    const refused: Refused[] = [];
    const what = `delete ${keys[0]} and ${keys.length - 1} more`;
    try {
      await this.#requests.run({ kind: "delete", what }, async ({ signal }) => {
        const failed = await this.#deleteTogether(left, signal);
        const again = failed.filter(({ error }) => failureOf(error, this.#place).retry);
        refused.push(...failed.filter((one) => !again.includes(one)));
        left = again.map(({ key }) => key);
        if (again[0] !== undefined) throw again[0].error;
      });
      return refused;
    } catch (error) {
      if (error instanceof ObjectStoreError && isNoBulkDelete(error)) return this.#fallBack(left);
      return [...refused, ...left.map((key) => ({ key, error }))];
    }
  }

  async #deleteTogether(keys: readonly string[], signal: AbortSignal): Promise<Refused[]> {
    const { bucket } = this.#place;
    const Delete = { Objects: keys.map((Key) => ({ Key })), Quiet: true };
    const { Errors = [] } = await this.#client.send(new DeleteObjectsCommand({ Bucket: bucket, Delete }), {
      abortSignal: signal,
    });
    return Errors.filter(({ Code }) => Code !== "NoSuchKey").map(({ Key = "", Code = "Error", Message = Code }) => ({
      key: Key,
      // Read like the answer to a request of its own.
      error: Object.assign(new Error(`${Code}: ${Message}`), { name: Code, $metadata: { httpStatusCode: 400 } }),
    }));
  }

  async #fallBack(keys: readonly string[]): Promise<Refused[]> {
    const refused = await this.#deleteEach(keys);
    if (refused.length === 0) this.#oneByOne = true;
    return refused;
  }

  async #deleteEach(keys: readonly string[]): Promise<Refused[]> {
    const outcomes = await Promise.all(keys.map((key) => this.#deleteOne(key)));
    return outcomes.filter((outcome) => outcome !== undefined);
  }

  async #deleteOne(key: string): Promise<Refused | undefined> {
    const { bucket } = this.#place;
    try {
      await this.#requests.run({ kind: "delete", what: `delete ${key}` }, async ({ signal }) => {
        await this.#client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }), { abortSignal: signal });
      });
      return undefined;
    } catch (error) {
      return error instanceof ObjectStoreError && error.failure.outcome === "not_found" ? undefined : { key, error };
    }
  }
}

/** Some stores have no such request; what they answer differs. */
function isNoBulkDelete({ failure, cause }: ObjectStoreError): boolean {
  const { status } = factsOf(cause);
  return (
    failure.outcome === "refused" && !failure.misconfigured && (status === 400 || status === 405 || status === 501)
  );
}

function failureOfAll(asked: number, refused: readonly Refused[]): EngineError {
  const shown = refused.slice(0, KEYS_SHOWN).map(({ key, error }) => `${key} (${messageOf(error)})`);
  const more = refused.length > shown.length ? ` and ${refused.length - shown.length} more` : "";
  const message = `${refused.length} of ${asked} objects could not be deleted: ${shown.join(", ")}${more}`;
  const errors = refused.map(({ error }) => error);
  return new EngineError("unavailable", message, { cause: new AggregateError(errors, message) });
}
