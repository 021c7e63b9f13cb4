import { expect, it } from "vitest";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { eventsIn, fieldOf, outcomeOf } from "./sandboxes.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "./server.test-kit.ts";

const ENV = { ENGINE_SANDBOX_WARM_POOL: "1", ENGINE_LOG_LEVEL: "info" };

describeInCage("sandboxes of a server", () => {
  const server = sandboxServer(() => ENV);
  const { client } = server;

  it("makes, pauses, resumes, stops, starts and deletes one", { timeout: TIMEOUT_MS }, async () => {
    const id = await client.create({ env_vars: { COLOUR: "red" } });
    expect(await client.exec(id, "echo $COLOUR; id -u; exit 7")).toEqual({ stdout: "red\n1000\n", exitCode: 7 });
    expect((await client.call("PUT", `/${id}/files/home/agent/f.txt`, "hello")).status).toBe(200);
    expect((await client.call("POST", `/${id}/pause`)).json).toMatchObject({ state: "paused" });
    expect((await client.call("GET", `/${id}/files/home/agent/f.txt`)).text).toBe("hello");
    expect((await client.call("POST", `/${id}/resume`)).json).toMatchObject({ state: "running" });
    expect(await client.exec(id, "cat ~/f.txt")).toEqual({ stdout: "hello", exitCode: 0 });
    expect((await client.call("POST", `/${id}/stop`)).json).toMatchObject({ state: "stopped" });
    expect((await client.call("POST", `/${id}/start`)).json).toMatchObject({ state: "running" });
    expect(await client.exec(id, "ls ~/f.txt")).toMatchObject({ exitCode: 2 });
    expect((await client.call("DELETE", `/${id}`)).status).toBe(204);
    expect((await client.call("GET", `/${id}`)).status).toBe(404);
  });

  it(
    "keeps the disk of a persistent one, with its files at hand while it is stopped",
    { timeout: TIMEOUT_MS },
    async () => {
      const script = { name: "mark", script: "date +%N > /etc/mark; echo marked" };
      const id = await client.create({ persistence: "persistent", provisioning_scripts: [script] });
      const { stdout: mark } = await client.exec(id, "cat /etc/mark");
      await client.call("POST", `/${id}/stop`);
      expect((await client.call("GET", `/${id}/files/etc/mark`)).text).toBe(mark);
      expect((await client.call("PUT", `/${id}/files/home/agent/put`, "while stopped")).status).toBe(200);
      expect((await client.call("POST", `/${id}/start`)).json).toMatchObject({ state: "running" });
      expect(await client.exec(id, "cat /etc/mark ~/put")).toEqual({ stdout: `${mark}while stopped`, exitCode: 0 });
      expect((await client.call("GET", `/${id}/logs`)).text.match(/marked/g)).toHaveLength(1);
    },
  );

  it("keeps what is in a volume from one sandbox to the next", { timeout: TIMEOUT_MS }, async () => {
    const volumes = [{ name: "shared", mount_path: "/data", size_mb: 64 }];
    const first = await client.create({ volumes });
    expect(await client.exec(first, "echo kept > /data/f")).toMatchObject({ exitCode: 0 });
    await client.call("DELETE", `/${first}`);
    await client.reaches(first, "gone");
    const second = await client.create({ volumes });
    expect(await client.exec(second, "cat /data/f")).toEqual({ stdout: "kept\n", exitCode: 0 });
    await client.call("DELETE", `/${second}`);
  });

  it("lets a sandbox out by its proxy alone, which refuses what is not allowed", { timeout: TIMEOUT_MS }, async () => {
    const id = await client.create({ network: { enabled: true, allowed_hosts: ["allowed.example"] } });
    const asked = "curl -s -o /dev/null -w '%{http_code}' http://example.com/";
    expect(await client.exec(id, asked)).toEqual({ stdout: "403", exitCode: 0 });
    expect(await client.exec(id, `${asked} --noproxy '*'`)).toMatchObject({ stdout: "000" });
    await client.call("DELETE", `/${id}`);
  });

  it("has commands go on when the server is killed", { timeout: TIMEOUT_MS }, async () => {
    const id = await client.create();
    const command = "for i in $(seq 1 60); do echo line $i; sleep 0.1; done; exit 5";
    const begun = await fetch(`${server.url}/api/v1/sandboxes/${id}/exec/stream`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ command }),
    });
    const { text: seen } = await readUntilCut(begun, () => server.stop("SIGKILL"));
    const first = eventsIn(seen);
    const execId = String(fieldOf(first.find(({ type }) => type === "connected")?.data, "exec_id"));
    const lastId = first.findLast(({ type }) => type === "stdout")?.id ?? "";
    expect(outcomeOf(seen)).toMatchObject({ exitCode: undefined });
    await server.start();
    await client.reaches(id, "running");
    const resumed = await fetch(`${server.url}/api/v1/sandboxes/${id}/exec/${execId}/stream`, {
      headers: { "last-event-id": lastId },
    });
    expect(resumed.status).toBe(200);
    const rest = outcomeOf(await resumed.text());
    const lines = Array.from({ length: 60 }, (_, i) => `line ${i + 1}\n`).join("");
    expect(outcomeOf(seen).stdout + rest.stdout).toBe(lines);
    expect(rest.exitCode).toBe(5);
    expect(server.log()).toContain("going on with a sandbox of the process before");
  });
});

/** Reads some of a stream, has it cut, and reads what still came. */
async function readUntilCut(response: Response, cut: () => Promise<unknown>): Promise<{ text: string }> {
  const decoder = new TextDecoder();
  let text = "";
  let cutting: Promise<unknown> | undefined;
  try {
    for await (const piece of response.body ?? []) {
      text += decoder.decode(piece, { stream: true });
      if (text.includes("line 10") && cutting === undefined) cutting = cut();
    }
  } catch {
    // The connection broke, as it should.
  }
  await cutting;
  return { text: text.slice(0, text.lastIndexOf("\n\n") + 2) };
}
