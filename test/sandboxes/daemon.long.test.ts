import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { serverWithDaemon } from "./daemon.test-kit.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";

const TIMEOUT_MS = 120_000;

describeInCage("sandboxes of a node of its own", () => {
  const server = serverWithDaemon(() => ({ node: { ENGINE_SANDBOX_NODE_LABELS: "zone=a" } }));
  const { client } = server;

  it("does what the server wishes, over the connection that the node opened", { timeout: TIMEOUT_MS }, async () => {
    const id = await client.create();
    expect(await client.exec(id, "echo far away; exit 3")).toEqual({ stdout: "far away\n", exitCode: 3 });
    expect((await client.call("PUT", `/${id}/files/home/agent/f`, "x".repeat(1_000_000))).status).toBe(200);
    expect((await client.call("GET", `/${id}/files/home/agent/f`)).text).toBe("x".repeat(1_000_000));
    expect((await client.call("POST", `/${id}/pause`)).json).toMatchObject({ state: "paused" });
    expect((await client.call("POST", `/${id}/resume`)).json).toMatchObject({ state: "running" });
    await client.call("DELETE", `/${id}`);
  });

  it("builds images, and has sandboxes of them", { timeout: TIMEOUT_MS }, async () => {
    const images = async (path: string, init?: RequestInit): Promise<unknown> =>
      (await fetch(`${server.url}/api/v1/images${path}`, init)).json();
    // More than a part of the archive.
    const run = "head -c 6000000 /dev/urandom > /opt/noise; echo made > /opt/made";
    const asked = await images("/build", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        provider: "codex",
        template_source: `base = "host"\n[[commands]]\nrun = "${run}"\n`,
      }),
    });
    let build: unknown;
    do {
      await pause(100);
      build = await images(`/builds/${String(fieldOf(asked, "build_id"))}`);
    } while (["queued", "building"].includes(String(fieldOf(build, "status"))));
    expect(build).toMatchObject({ status: "succeeded", error: null });
    const id = await client.create({ image: String(fieldOf(build, "image_id")) });
    expect(await client.exec(id, "cat /opt/made; stat -c %s /opt/noise")).toEqual({
      stdout: "made\n6000000\n",
      exitCode: 0,
    });
    await client.call("DELETE", `/${id}`);
  });

  it.each(["SIGKILL", "SIGTERM"] as const)(
    "has sandboxes go on when the node gets %s",
    { timeout: TIMEOUT_MS },
    async (signal) => {
      const id = await client.create();
      const command = "for i in $(seq 1 50); do echo line $i; sleep 0.1; done; exit 4";
      const running = client.exec(id, command);
      await pause(1_500);
      await server.daemon.end(signal);
      await server.start();
      // The server attached to the command again.
      const lines = Array.from({ length: 50 }, (_, i) => `line ${i + 1}\n`).join("");
      expect(await running).toEqual({ stdout: lines, exitCode: 4 });
      expect(server.daemon.log()).toContain("going on with a sandbox of the process before");
      await client.call("DELETE", `/${id}`);
      await pause(1_000);
    },
  );
});
