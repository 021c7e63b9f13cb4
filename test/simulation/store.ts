import { readFile } from "node:fs/promises";
import {
  ObjectNotFound,
  rangeOf,
  type GetOptions,
  type ObjectInfo,
  type ObjectStore,
} from "../../src/io/objectstore/objectstore.ts";
import type { Machine } from "./machine.ts";
import type { Network, RemoteCall } from "./network.ts";
import type { Scheduler } from "./scheduler.ts";

type StoredObject = { bytes: Uint8Array<ArrayBuffer>; modifiedAtMs: number };

/** Hears of every change at the moment when it happens. */
export type StoreWatcher = {
  put(key: string, bytes: Uint8Array<ArrayBuffer>, before: Uint8Array<ArrayBuffer> | undefined): void;
  deleted(key: string): void;
};

/** The objects themselves. */
export class StoredObjects {
  watcher: StoreWatcher | undefined;
  readonly #scheduler: Scheduler;
  readonly #objects = new Map<string, StoredObject>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  get(key: string): Uint8Array<ArrayBuffer> | undefined {
    return this.#objects.get(key)?.bytes;
  }

  put(key: string, bytes: Uint8Array<ArrayBuffer>): void {
    const before = this.get(key);
    this.#objects.set(key, { bytes, modifiedAtMs: this.#scheduler.nowMs });
    this.watcher?.put(key, bytes, before);
  }

  delete(keys: readonly string[]): void {
    for (const key of keys) if (this.#objects.delete(key)) this.watcher?.deleted(key);
  }

  /** In the order of their keys. */
  infos(prefix: string): ObjectInfo[] {
    const keys = [...this.#objects.keys()].filter((key) => key.startsWith(prefix)).sort();
    return keys.map((key) => this.info(key)).filter((info) => info !== undefined);
  }

  info(key: string): ObjectInfo | undefined {
    const object = this.#objects.get(key);
    if (object === undefined) return undefined;
    const { bytes, modifiedAtMs } = object;
    return { key, sizeBytes: bytes.byteLength, modifiedAtMs, identity: `${bytes.byteLength}-${modifiedAtMs}` };
  }
}

export type ListOptions = {
  /** Keys of one answer. */
  pageKeys: number;
  /** Whether the keys of an answer come in any order, as some stores have it. */
  isShuffled: boolean;
};

/**
 * The store as one machine has it: every call goes over the network. A listing is strong, as S3's is, but comes in
 * answers that are of different moments.
 */
export class RemoteStore implements ObjectStore {
  readonly #ports: { objects: StoredObjects; network: Network; scheduler: Scheduler; list: ListOptions };
  readonly #machine: Machine;

  constructor(
    ports: { objects: StoredObjects; network: Network; scheduler: Scheduler; list: ListOptions },
    machine: Machine,
  ) {
    this.#ports = ports;
    this.#machine = machine;
  }

  put(key: string, given: Uint8Array): Promise<void> {
    const { objects, scheduler } = this.#ports;
    // What is sent is what it was then: the caller may use its buffer again.
    const bytes = Uint8Array.from(given);
    const length = scheduler.below(bytes.length);
    return this.#call("put", key, {
      isWrite: true,
      repeats: true,
      effect: async () => objects.put(key, bytes),
      tear: async () => objects.put(key, bytes.slice(0, length)),
    });
  }

  async putFile(key: string, path: string): Promise<void> {
    await this.put(key, await readFile(path));
  }

  get(key: string, options?: GetOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#call("get", key, {
      isWrite: false,
      effect: async () => {
        const bytes = this.#ports.objects.get(key);
        if (bytes === undefined) throw new ObjectNotFound(key);
        const { start, end } = rangeOf(bytes.length, options);
        return bytes.slice(start, end);
      },
    });
  }

  head(key: string): Promise<ObjectInfo | undefined> {
    return this.#call("head", key, { isWrite: false, effect: async () => this.#ports.objects.info(key) });
  }

  async *list(prefix: string, options?: { startAfter?: string }): AsyncGenerator<ObjectInfo> {
    const { objects, scheduler, list } = this.#ports;
    for (let after = options?.startAfter ?? ""; ;) {
      const from = after;
      const page = await this.#call("list", prefix, {
        isWrite: false,
        effect: async () =>
          objects
            .infos(prefix)
            .filter(({ key }) => key > from)
            .slice(0, list.pageKeys),
      });
      after = page.at(-1)?.key ?? "";
      while (page.length > 0) yield* page.splice(list.isShuffled ? scheduler.below(page.length) : 0, 1);
      if (after === "") return;
    }
  }

  delete(keys: readonly string[]): Promise<void> {
    const { objects, scheduler } = this.#ports;
    const some = keys.slice(0, scheduler.below(keys.length + 1));
    return this.#call("delete", `${keys[0]} and ${keys.length - 1} more`, {
      isWrite: true,
      effect: async () => objects.delete(keys),
      tear: async () => objects.delete(some),
    });
  }

  #call<T>(
    operation: string,
    about: string,
    call: Pick<RemoteCall<T>, "isWrite" | "repeats" | "effect" | "tear">,
  ): Promise<T> {
    return this.#ports.network.call(this.#machine, { label: `${operation} ${about}`, ...call });
  }
}
