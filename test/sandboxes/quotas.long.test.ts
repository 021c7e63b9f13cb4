import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { EventClient } from "../sandbox-routes/live.test-kit.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "./server.test-kit.ts";

const QUOTA = 1024 * 1024;
const SMALL = { resource_limits: { memory_mb: 128, disk_mb: 64 } };

describeInCage("what one sandbox writes", () => {
  const server = sandboxServer(() => ({ ENGINE_SANDBOX_EVENTS_BYTES: String(QUOTA) }));

  it(
    "stays within its quota, is told where it was dropped, and leaves others alone",
    { timeout: TIMEOUT_MS },
    async () => {
      const { client } = server;
      const quiet = await client.create(SMALL);
      const loud = await Promise.all([client.create(SMALL), client.create(SMALL), client.create(SMALL)]);
      await client.exec(quiet, "echo quiet > /proc/1/fd/1");
      const floods = [
        "timeout -s KILL 4 yes > /proc/1/fd/1; true",
        "timeout -s KILL 4 cat /dev/zero > /proc/1/fd/2; true",
        "timeout -s KILL 4 yes 'a line that is longer than others are, and comes as often as it can' > /proc/1/fd/1; true",
      ];
      const flooding = Promise.all(loud.map((id, i) => client.exec(id, floods[i] ?? "")));
      const took: number[] = [];
      for (let i = 0; i < 10; i++) {
        const began = performance.now();
        expect((await client.exec(quiet, "echo here")).stdout).toBe("here\n");
        took.push(performance.now() - began);
      }
      await flooding;
      expect(took.toSorted((a, b) => a - b)[5]).toBeLessThan(2_000);
      const counts = () => {
        const db = new DatabaseSync(join(server.home, "catalog.db"), { readOnly: true });
        const rows = db
          .prepare(
            "SELECT sandboxes.id AS id, first_seq, cut_bytes, events_bytes, sum(size_bytes) AS kept FROM sandboxes " +
              "JOIN sandbox_events ON sandbox_id = sandboxes.id GROUP BY sandboxes.id",
          )
          .all();
        db.close();
        return rows.map((row) => ({
          id: String(row["id"]),
          first: Number(row["first_seq"]),
          bytes: Number(row["kept"]),
          row,
        }));
      };
      for (const { bytes, row } of counts()) {
        expect(Number(row["events_bytes"])).toBe(bytes);
        expect(bytes).toBeLessThanOrEqual(QUOTA);
      }
      const byId = new Map(counts().map((one) => [one.id, one]));
      expect(byId.get(quiet)?.first).toBe(1);
      for (const id of loud) {
        const first = byId.get(id)?.first ?? 0;
        expect(first).toBeGreaterThan(1);
        const reader = await EventClient.open(`${server.url}/api/v1/sandboxes/${id}/stream`, {
          headers: { "Last-Event-ID": "1" },
        });
        const seen = await reader.until((message) => message.id !== undefined);
        reader.leave();
        const [, mark, next] = seen;
        expect(mark?.event).toMatchObject({ event_type: "error", data: { code: "events_lost" } });
        expect(Number(mark?.event.data["dropped_events"])).toBe(Number(next?.id) - 2);
        expect(Number(mark?.event.data["log_dropped_bytes"])).toBeGreaterThan(0);
      }
    },
  );
});

describeInCage("a volume", () => {
  const server = sandboxServer();
  const volumes = async () => {
    const response = await fetch(`${server.url}/api/v1/volumes`);
    return (await response.json()) as Record<string, unknown>[];
  };
  const remove = async (id: unknown) =>
    (await fetch(`${server.url}/api/v1/volumes/${String(id)}`, { method: "DELETE" })).status;
  const onDisk = () => readdirSync(join(server.home, "sandboxes", "volumes")).length;

  it("is deleted with its bytes, also from the disk of its node", { timeout: TIMEOUT_MS }, async () => {
    const { client } = server;
    const spec = { ...SMALL, volumes: [{ name: "data", mount_path: "/data", size_mb: 16 }] };
    const first = await client.create(spec);
    await client.exec(first, "echo kept > /data/file");
    const [volume] = await volumes();
    expect(volume).toMatchObject({ name: "data", owned_by: "local", size_mb: 16, in_use: true, expires_at: null });
    expect(fieldOf(volume, "node_id")).not.toBeNull();
    expect(await remove(volume?.["id"])).toBe(409);
    await client.call("DELETE", `/${first}`);
    const second = await client.create(spec);
    expect((await client.exec(second, "cat /data/file")).stdout).toBe("kept\n");
    await client.call("DELETE", `/${second}`);
    expect(await remove(volume?.["id"])).toBe(204);
    expect(await volumes()).toEqual([]);
    await expect.poll(onDisk).toBe(0);
    const third = await client.create(spec);
    expect((await client.exec(third, "cat /data/file || echo nothing")).stdout).toBe("nothing\n");
  });
});
