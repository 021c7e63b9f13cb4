import { afterAll, beforeAll, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { seal } from "../seal-thread.ts";
import { send, StagedWorld, withCalls } from "./staged-world.test-kit.ts";

/**
 * A committer dies at every call that it makes, before and after the call has taken effect: whatever it was, the next
 * one loses nothing and doubles nothing.
 */
let world: StagedWorld;

beforeAll(async () => {
  world = await StagedWorld.open();
});

afterAll(async () => {
  await world.close();
});

class Death extends Error {}

/** A process that dies at its `at`th call to the outside; every call after that fails without effect. */
class Mortal {
  calls = 0;
  readonly #at: number;
  readonly #when: "before" | "after";

  constructor(at: number, when: "before" | "after") {
    this.#at = at;
    this.#when = when;
  }

  async call<T>(effect: () => Promise<T>): Promise<T> {
    this.calls++;
    if (this.calls > this.#at || (this.calls === this.#at && this.#when === "before")) throw new Death("dead");
    const result = await effect();
    if (this.calls >= this.#at) throw new Death("dead");
    return result;
  }

  catalog(inner: Catalog): Catalog {
    return new Proxy(inner, {
      get:
        (target, name) =>
        (...args: unknown[]) =>
          this.call(() => (Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>).apply(target, args)),
    });
  }

  store(inner: ObjectStore): ObjectStore {
    const call = <T>(effect: () => Promise<T>) => this.call(effect);
    return {
      put: (key, bytes) => call(() => inner.put(key, bytes)),
      putFile: (key, path) => call(() => inner.putFile(key, path)),
      get: (key) => call(() => inner.get(key)),
      head: (key) => call(() => inner.head(key)),
      delete: (keys) => call(() => inner.delete(keys)),
      async *list(prefix) {
        yield* await call(() => Array.fromAsync(inner.list(prefix)));
      },
    };
  }
}

/** Stages what takes every path of a round, and says which bodies must be visible in the end. */
async function stage(name: string): Promise<string[]> {
  const node = world.staged();
  // Without a wait for the ledger its requests share a flush.
  const later = world.staged({
    node: "node-2",
    catalog: withCalls(world.catalog, { lookUpKey: async () => ({ entry: undefined, atMs: 0 }) }),
  });
  await send(node, `{"body":"${name} sealed"}`, { table: "t" });
  await send(node, `{"body":"${name} raw","${name}":1}`, { table: "t", idempotencyKey: `${name} raw` });
  await send(later, `{"body":"${name} raw again","${name}":2}`, { table: "t", idempotencyKey: `${name} raw` });
  await Promise.all([
    send(later, `{"body":"${name} loser"}`, { table: "t", idempotencyKey: `${name} k` }),
    send(later, `{"body":"${name} neighbour"}`, { table: "t", idempotencyKey: `${name} other` }),
  ]);
  await send(world.sync(), `{"body":"${name} winner"}`, { table: "t", idempotencyKey: `${name} k` });
  await send(node, `{"body":"${name} elsewhere"}`, { table: "u" });
  await world.inner.put(`engine/_staged/node-1/${name}`, Buffer.from("damaged"));
  return ["sealed", "raw", "neighbour", "winner", "elsewhere"].map((what) => `${name} ${what}`);
}

async function visible(name: string): Promise<string[]> {
  const bodies = [...(await world.values("body", "t")), ...(await world.values("body", "u"))];
  return bodies.filter((body) => body.startsWith(`${name} `));
}

function commitAs(process: Mortal): Promise<void> {
  return world.commit({ catalog: process.catalog(world.catalog), store: process.store(world.inner), seal });
}

test("at any call, nothing is lost and nothing is doubled", { timeout: 120_000 }, async () => {
  await stage("whole");
  const whole = new Mortal(Infinity, "before");
  await commitAs(whole);
  expect(whole.calls).toBeGreaterThan(20);
  let died = 0;
  for (let at = 1; at <= whole.calls; at++) {
    for (const when of ["before", "after"] as const) {
      const name = `${when}${at}`;
      const expected = await stage(name);
      const process = new Mortal(at, when);
      // Where the call that failed was not needed, the round may end well.
      await commitAs(process).catch((error: unknown) => {
        if (!(error instanceof Death)) throw error;
        died++;
      });
      for (const body of await visible(name)) expect(expected).toContain(body);
      await world.commit();
      expect((await visible(name)).toSorted(), `${name}: rows`).toEqual(expected.toSorted());
      expect(await world.keys("engine/_staged/"), `${name}: staged`).toEqual([]);
      expect(await world.keys(`engine/_damaged/node-1/${name}`), `${name}: damaged`).toHaveLength(2);
    }
  }
  expect(died).toBeGreaterThan(20);
  await world.catalog.verify();
});
