import { afterEach, beforeEach, expect, it } from "vitest";
import type { CatalogDatabase } from "../../../catalog/catalog-database.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { ANN, BOB, controlPlaneOn, originOf, ROOT, type ControlPlane } from "./scheduler.test-kit.ts";
import { SANDBOX_TABLES } from "../../../auth/owned-sandbox-tables.ts";
import { Ownership } from "../../../auth/ownership.ts";

const NODE = "node-1";
const VOLUMES = [{ name: "data", mountPath: "/data", readOnly: false, sizeMb: 10 }];

let catalog: CatalogDatabase;
let plane: ControlPlane;
let ownership: Ownership;
beforeEach(() => {
  const clock = new ManualClock();
  ({ catalog } = openMemoryCatalog(clock));
  plane = controlPlaneOn({ catalog, clock });
  ownership = new Ownership({ records: plane.records, audit: plane.audit });
});
afterEach(async () => {
  plane.fabric.close();
  await catalog.close();
});

it("every table of sandboxes that has an owner is known to transfers", async () => {
  const found = await plane.records.rows(
    "SELECT m.name AS name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' " +
      "AND c.name = 'tenant' ORDER BY m.name",
  );
  expect(SANDBOX_TABLES.map(({ name }) => name).toSorted()).toEqual(found.map(({ name }) => String(name)));
});

it("a sandbox is handed over with its sessions, its events, its job and its volumes", async () => {
  await plane.report(NODE);
  const { id, jobId = "" } = await plane.create({ name: "box", volumes: VOLUMES }, ANN);
  const session = await plane.sandboxes.sessions.create(id, {}, ANN);
  await ownership.transfer("ann", "bob", originOf(ROOT));
  await expect(plane.sandboxes.get(id, ANN)).rejects.toMatchObject({ code: "sandbox_not_found" });
  await expect(plane.sandboxes.sessions.get(session.id, ANN)).rejects.toMatchObject({ code: "session_not_found" });
  expect(await plane.sandboxes.get(id, BOB)).toMatchObject({ tenant: "bob", owner: { subject: "bob", role: "write" } });
  expect(await plane.sandboxes.sessions.get(session.id, BOB)).toMatchObject({ id: session.id });
  expect((await plane.events(id)).map(({ tenant }) => tenant)).toEqual(["bob"]);
  expect(await plane.fabric.find(jobId, ANN)).toBeUndefined();
  expect(await plane.fabric.find(jobId, { ...BOB, databases: undefined })).toMatchObject({ id: jobId });
  // Its node goes on with it.
  const [hold] = await plane.claim(NODE);
  expect(await plane.sandboxes.desiredState(hold ?? { jobId: "", holder: "", fence: 0 })).toMatchObject({
    tenant: "bob",
  });
});

it.each([
  ["sandboxes", { name: "box" }],
  ["sandbox_volumes", { volumes: VOLUMES }],
])("what both have under one name is in the way: %s", async (table, spec) => {
  await plane.report(NODE);
  await plane.create(spec, ANN);
  await plane.create(spec, BOB);
  await expect(ownership.transfer("ann", "bob", originOf(ROOT))).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining(table) as unknown,
  });
});
