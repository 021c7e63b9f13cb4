import { globSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { backupJson } from "./command.test-kit.ts";

const EXTENTS = 200;
const WITHIN_MS = 120_000;

describe.skipIf(lacks("PostgreSQL"))("a backup that a job makes", () => {
  let databases: TestDatabases;
  beforeAll(async () => {
    databases = await sharedTestServer();
  });
  afterAll(() => databases.stop());

  test("goes on at another worker when its own is killed half-way", { timeout: 300_000 }, async () => {
    const { home, remove } = await temporaryHome();
    const destination = join(home, "backups");
    const env = {
      ENGINE_CATALOG_URL: await databases.createDatabase(),
      ENGINE_LOCAL_DATA: join(home, "data"),
      ENGINE_BACKUP_DESTINATIONS: destination,
      ENGINE_COMPACTION_POLL_SECS: "0",
      ENGINE_FABRIC_LEASE_SECS: "10",
      ENGINE_FABRIC_SWEEP_SECS: "1",
      ENGINE_SANDBOX_RUNTIME: "off",
    };
    const start = (name: string): Promise<Engine> => startEngine({ home: join(home, name), env });
    const first = await start("first");
    for (let i = 0; i < EXTENTS; i++) expect((await ingest(first.url, "t", `{"id":"${i}"}\n`)).status).toBe(200);
    const copies = (): number => globSync(join(destination, "objects/**/*-crc32-*")).length;
    const id = await enqueueBackup(first.url, destination);
    await eventually(() => copies() > 0, WITHIN_MS);
    await first.stop("SIGKILL");
    const copied = copies();
    expect(copied).toBeLessThan(EXTENTS);
    expect(globSync(join(destination, "backups/*/manifest.json"))).toEqual([]);

    const second = await start("second");
    let job: Record<string, unknown> = {};
    await eventually(async () => {
      job = (await (await fetch(`${second.url}/v1/jobs/${id}`)).json()) as typeof job;
      return job["status"] === "done" || job["status"] === "failed";
    }, WITHIN_MS);
    expect(job).toMatchObject({ status: "done", attempt: 2, result: { objects: EXTENTS } });
    const { objects_copied: copiedNow } = job["result"] as { objects_copied: number };
    // Copies that the killed one made are taken as they are; the last of them it had perhaps not seen made.
    expect(copiedNow).toBeLessThanOrEqual(EXTENTS - copied);
    await second.stop();
    expect(copies()).toBe(EXTENTS);
    const verified = await backupJson(["verify", destination], { ENGINE_HOME: join(home, "client") });
    expect(verified).toMatchObject({ ok: true, backups: 1, objects: EXTENTS });
    await remove();
  });
});

async function enqueueBackup(url: string, destination: string): Promise<string> {
  const body = JSON.stringify({ kind: "backup", payload: { destination } });
  const answer = await fetch(`${url}/v1/jobs`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body,
  });
  const job = (await answer.json()) as { job_id?: string };
  expect({ status: answer.status, job }).toMatchObject({ job: { job_id: expect.any(String) as unknown } });
  return job.job_id ?? "";
}
