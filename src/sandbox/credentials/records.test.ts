import { afterEach, beforeEach, expect, it } from "vitest";
import type { CatalogDatabase } from "../../catalog/records.ts";
import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../core/clock.ts";
import { controlPlaneOn } from "../scheduler/scheduler.test-kit.ts";
import { directoryOf } from "./directory.test-kit.ts";

const SECRETS = directoryOf([
  { id: "key", label: "k", kind: "api_key", metadata: {} },
  { id: "pat", label: "p", kind: "pat", metadata: {} },
]);
const OWNER = { subject: "ann", kind: "static", role: "write", databases: ["a", "b"] } as const;
const NODE = "node-1";
const SPEC = {
  credentials: [{ credentialId: "key", envVar: "ANTHROPIC_API_KEY", hosts: [] }],
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
  return await plane.fabric.held(hold);
}

const EXPECTED = { credentials: ["key", "pat"], owner: { subject: "engine", databases: ["a", "b"] } };

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
