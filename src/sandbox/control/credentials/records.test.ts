import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Ownership } from "../../../auth/ownership.ts";
import type { CatalogDatabase } from "../../../catalog/catalog-database.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { controlPlaneOn, originOf, ROOT } from "../scheduler/scheduler.test-kit.ts";
import { directoryOf } from "./directory.test-kit.ts";
import { isStillBound } from "../scheduler/still-bound.ts";

const SECRETS = directoryOf([
  { id: "key", label: "k", kind: "api_key", metadata: {} },
  { id: "pat", label: "p", kind: "pat", metadata: {} },
  { id: "of-root", label: "r", kind: "api_key", metadata: {}, owner: "root" },
]);
const OWNER = { subject: "ann", kind: "static", role: "write", databases: ["a", "b"] } as const;
const NODE = "node-1";
const USE = { credentialId: "key", envVar: "ANTHROPIC_API_KEY", hosts: [] };
const SPEC = {
  credentials: [USE],
  gitRepos: [
    {
      url: "https://elsewhere.example/a/b",
      pin: undefined,
      path: "/home/agent/b",
      depth: undefined,
      credentialId: "pat",
    },
  ],
};

let catalog: CatalogDatabase;
let plane: ReturnType<typeof controlPlaneOn>;

beforeEach(() => {
  const clock = new ManualClock();
  ({ catalog } = openMemoryCatalog(clock));
  plane = controlPlaneOn({ catalog, clock }, { credentials: SECRETS });
});
afterEach(async () => {
  plane.fabric.close();
  await catalog.close();
});

/** The job by which the node has the sandbox. */
async function jobOf(): Promise<unknown> {
  const [hold] = await plane.claim(NODE);
  if (hold === undefined) throw new Error("there is no job");
  return await plane.fabric.leasedJob(hold);
}

const EXPECTED = { credentials: ["key", "pat"], owner: { subject: "ann", role: "write", databases: ["a", "b"] } };

it("the job of a sandbox names its credentials, to be opened in the scope of who made it", async () => {
  await plane.report(NODE);
  const { id, spec } = await plane.create(SPEC, OWNER);
  expect(spec.credentials).toMatchObject([{ credentialId: "key", hosts: ["api.claude.example"] }]);
  expect(await jobOf()).toMatchObject(EXPECTED);
  const uses = await plane.audit.list({ limit: 10, action: "credential.use" });
  expect(uses.map(({ actor, target, details }) => ({ actor, target, details }))).toEqual(
    ["pat", "key"].map((target) => ({ actor: "ann", target, details: { sandbox: id } })),
  );
});

it("so does the job of one that waited for its node", async () => {
  await plane.create(SPEC, OWNER);
  await plane.report(NODE);
  expect(await plane.sandboxes.place()).toBe(1);
  expect(await jobOf()).toMatchObject(EXPECTED);
});

it("a sandbox is not made with what its maker does not see", async () => {
  const credentials = [{ credentialId: "gone", envVar: undefined, hosts: ["a.example"] }];
  await expect(plane.create({ credentials }, OWNER)).rejects.toMatchObject({ code: "credential_not_found" });
  expect(await plane.records.rows("SELECT id FROM sandboxes")).toEqual([]);
  expect(await plane.audit.list({ limit: 10 })).toEqual([]);
});

describe("a sandbox that has a credential", () => {
  const key = { id: "key", label: "k", kind: "api_key", metadata: {}, owner: "ann", shared: false };
  const toHosts = (...hosts: string[]) => ({ ...key, metadata: { hosts } });
  const damaged = { ...key, metadata: { hosts: "api.claude.example" } };
  const made = async (owner: typeof OWNER | typeof ROOT = OWNER) => {
    await plane.report(NODE);
    const credentials = [owner === ROOT ? { ...USE, credentialId: "of-root" } : USE];
    const { jobId = "" } = await plane.create({ credentials }, owner);
    return (credential: Parameters<typeof isStillBound>[2]) => isStillBound(plane.records, jobId, credential);
  };
  const transfer = (from: string, to: string) =>
    new Ownership({ records: plane.records, audit: plane.audit }).transfer(from, to, originOf(ROOT));

  it("keeps it for as long as its owner may use it, for hosts that it may go to", async () => {
    const has = await made();
    expect(await has(key)).toBe(true);
    expect(await has(toHosts("api.claude.example", "other.example"))).toBe(true);
    expect(await has(toHosts("other.example"))).toBe(false);
    expect(await has(damaged)).toBe(false);
    expect(await has({ ...key, owner: "bob" })).toBe(false);
    expect(await has({ ...key, owner: "bob", shared: true })).toBe(false);
    expect(await has({ ...toHosts("api.claude.example"), owner: "bob", shared: true })).toBe(true);
    expect(await isStillBound(plane.records, "another job", key)).toBe(false);
  });

  it("loses it when it is handed over, also that of an admin", async () => {
    const ofRoot = { ...key, id: "of-root", owner: "root" };
    const has = { anns: await made(), roots: await made(ROOT) };
    expect([await has.anns(key), await has.roots(key), await has.roots(ofRoot)]).toEqual([true, false, true]);
    await transfer("ann", "bob");
    await transfer("root", "bob");
    expect([await has.anns(key), await has.roots(key), await has.roots(ofRoot)]).toEqual([false, false, false]);
    const shared = { ...toHosts("api.claude.example"), shared: true };
    expect([await has.anns(shared), await has.roots(shared)]).toEqual([true, true]);
  });
});
