import { globSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { ingest, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { backup, backupJson } from "./command.test-kit.ts";

/** `kill -9` in the midst of a backup and of a restore: what is there is whole, and the same command goes on. */

const EXTENTS = 300;

test("a backup and a restore that were killed are repeated", async () => {
  const { home, remove } = await temporaryHome();
  const env = { ENGINE_HOME: join(home, "engine"), ENGINE_COMPACTION_POLL_SECS: "0" };
  const destination = join(home, "backups");
  const engine = await startEngine({ home: env.ENGINE_HOME, env });
  for (let i = 0; i < EXTENTS; i++) expect((await ingest(engine.url, "t", `{"id":"${i}"}\n`)).status).toBe(200);
  await engine.stop();

  const copies = (): number => globSync(join(destination, "objects/**/*-crc32-*")).length;
  const killed = await backup(["create", destination, "--direct"], env, async (isOver) => {
    await eventually(() => isOver() || copies() > 0);
  });
  expect(killed.signal).toBe("SIGKILL");
  expect((await backup(["list", destination], env)).stdout).toBe("there are no backups\n");
  const copied = copies();
  const made = await backupJson(["create", destination, "--direct"], env);
  expect(made).toMatchObject({ objects: EXTENTS });
  expect(Number(made["objects_copied"])).toBeLessThan(EXTENTS);
  expect(copied).toBeLessThan(EXTENTS);
  expect(await backupJson(["verify", destination], env)).toMatchObject({ ok: true, objects: EXTENTS });

  const restored = { ENGINE_HOME: join(home, "restored") };
  const there = (): number => globSync(join(restored.ENGINE_HOME, "data/engine/**/*.tlm")).length;
  const halfway = await backup(["restore", destination], restored, async (isOver) => {
    await eventually(() => isOver() || there() > 0);
  });
  expect(halfway.signal).toBe("SIGKILL");
  await backupJson(["restore", destination], restored);
  const again = await backup(["restore", destination], restored);
  expect(again).toMatchObject({ code: 1 });
  expect(again.stderr).toMatch(/is not empty/);
  const server = await startEngine({ home: restored.ENGINE_HOME });
  expect(await rowsOf(server.url, "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM t")).toEqual([
    { rows: EXTENTS, ids: EXTENTS },
  ]);
  await server.stop();
  await remove();
});
