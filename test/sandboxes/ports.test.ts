import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { sweepMounts } from "../../src/sandbox/runtime/mounts.ts";
import { describeAsRoot } from "../../src/sandbox/runtime/root.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { SandboxClient } from "./sandboxes.test-kit.ts";

const TIMEOUT_MS = 120_000;
const PORT = 8_080;

/** Answers with what it was told, and says good-bye when told to. */
const PROGRAM = `
  const { WebSocketServer } = require("./ws");
  const server = new WebSocketServer({ port: ${PORT}, handleProtocols: () => "echo" });
  server.on("connection", (socket, request) => socket.on("message", (data, isBinary) => {
    if (data.toString() === "bye") socket.close(4003, "as you wish");
    else socket.send(isBinary ? data : request.url + " " + data, { binary: isBinary });
  }));
`;

describeAsRoot("ports of a real sandbox", () => {
  let place: Awaited<ReturnType<typeof temporaryHome>>;
  let engine: Engine;
  const client = new SandboxClient(() => engine);
  const put = async (id: string, path: string, body: Uint8Array<ArrayBuffer>): Promise<void> => {
    const url = `${engine.url}/api/v1/sandboxes/${id}/files/home/agent/${path}`;
    expect((await fetch(url, { method: "PUT", body })).status).toBe(200);
  };

  beforeAll(async () => {
    place = await temporaryHome();
    engine = await startEngine({ home: place.home, env: { ENGINE_SANDBOX_WARM_POOL: "0" } });
  }, TIMEOUT_MS);
  afterAll(async () => {
    try {
      await pause(500);
      await engine.stop();
    } finally {
      await engine.stop("SIGKILL");
      await sweepMounts(place.home);
      await place.remove();
    }
  }, TIMEOUT_MS);

  it("carry WebSockets to a program inside", { timeout: TIMEOUT_MS }, async () => {
    const id = await client.create({ ports: [{ port: PORT }] });
    const library = dirname(fileURLToPath(import.meta.resolve("ws/package.json")));
    await put(id, "ws.tar", new Uint8Array(execFileSync("tar", ["-C", dirname(library), "-cf", "-", "ws"])));
    await put(id, "node?mode=0755", new Uint8Array(readFileSync(process.execPath)));
    await put(id, "program.cjs", new TextEncoder().encode(PROGRAM));
    const start = "tar -xf ws.tar && (./node program.cjs >program.log 2>&1 &) && sleep 0.1";
    expect(await client.exec(id, start)).toMatchObject({ exitCode: 0 });
    const url = `${engine.url.replace("http", "ws")}/api/v1/sandboxes/${id}/ports/${PORT}/chat?a=b`;
    const socket = await connect(url);
    expect(socket.protocol).toBe("echo");
    const told: (string | Buffer)[] = [];
    socket.on("message", (data: Buffer, isBinary) => void told.push(isBinary ? data : data.toString()));
    const large = Buffer.alloc(2_000_000, "0123456789abcdef");
    for (const message of ["grüß", large]) socket.send(message);
    await expect.poll(() => told.length).toBe(2);
    expect(told[0]).toBe("/chat?a=b grüß");
    expect(Buffer.compare(told[1] as Buffer, large)).toBe(0);
    // Work stands still while the sandbox does, and goes on.
    expect((await client.call("POST", `/${id}/pause`)).json).toMatchObject({ state: "paused" });
    socket.send("while paused");
    await pause(200);
    expect(told.length).toBe(2);
    expect((await client.call("POST", `/${id}/resume`)).json).toMatchObject({ state: "running" });
    await expect.poll(() => told[2]).toBe("/chat?a=b while paused");
    socket.send("bye");
    const [code, reason] = (await once(socket, "close")) as [number, Buffer];
    expect([code, reason.toString()]).toEqual([4_003, "as you wish"]);
    // What uses a port ends with the sandbox.
    const last = await connect(url);
    const over = once(last, "close");
    await client.call("DELETE", `/${id}`);
    expect((await over)[0]).toBe(1_006);
    await client.reaches(id, "gone");
  });

  /** The program may need a moment until it listens. */
  async function connect(url: string): Promise<WebSocket> {
    for (let triesLeft = 100; ; triesLeft--) {
      const socket = new WebSocket(url, ["other", "echo"]);
      try {
        await once(socket, "open");
        return socket;
      } catch (error) {
        if (triesLeft === 0) throw error;
        await pause(100);
      }
    }
  }
});
