import { beforeEach, expect, it } from "vitest";
import type { Held } from "../leased-files.ts";
import { SetupHosts } from "./setup-hosts.ts";

let open: Set<string>;
let now: Held;

beforeEach(() => {
  open = new Set();
  now = { sandboxId: "01900000-0000-7000-8000-000000000001", keepsDisk: false, isProvisioned: false };
});

/** As a process of the node has it: nothing is open when one begins. */
function begin(): SetupHosts {
  open = new Set();
  const mine = open;
  const letOut = (_: string, hosts: readonly string[]) => {
    const all = hosts.map((host) => `${host}#${mine.size}`);
    for (const one of all) mine.add(one);
    return () => all.forEach((one) => mine.delete(one));
  };
  const held = {
    get now() {
      return now;
    },
    update: async (change: Partial<Held>) => void (now = { ...now, ...change }),
  };
  return new SetupHosts({ letOut }, held);
}
const hosts = () => [...new Set([...open].map((one) => one.slice(0, one.indexOf("#"))))].toSorted();

it("are reached for their step alone", async () => {
  const setup = begin();
  setup.takeUp();
  expect(hosts()).toEqual([]);
  const close = await setup.open("Clone", ["git"]);
  expect(hosts()).toEqual(["git"]);
  await close();
  expect(hosts()).toEqual([]);
  expect(begin().takeUp()).toBeUndefined();
  expect(hosts()).toEqual([]);
});

it("are reached again when the next process begins, until its step is over", async () => {
  await (
    await begin().open("Clone", ["git"])
  )();
  const first = begin();
  await first.open("Install", ["npm"]);
  for (let crashes = 0; crashes < 3; crashes++) {
    const next = begin();
    next.takeUp();
    expect(hosts()).toEqual(["npm"]);
    // What was done before is passed over.
    const closeClone = await next.open("Clone", ["git"]);
    expect(hosts()).toEqual(["git", "npm"]);
    if (crashes === 0) continue;
    await closeClone();
    expect(hosts()).toEqual(["npm"]);
    if (crashes === 1) continue;
    const close = await next.open("Install", ["npm"]);
    expect(hosts()).toEqual(["npm"]);
    await close();
    expect(hosts()).toEqual([]);
  }
  const after = begin();
  after.takeUp();
  expect(hosts()).toEqual([]);
});
