import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { WebSocket } from "ws";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "./server.test-kit.ts";

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

describeInCage("ports of a real sandbox", () => {
  const server = sandboxServer();
  const { client } = server;
  const put = async (id: string, path: string, body: Uint8Array<ArrayBuffer>): Promise<void> => {
    const url = `${server.url}/api/v1/sandboxes/${id}/files/home/agent/${path}`;
    expect((await fetch(url, { method: "PUT", body })).status).toBe(200);
  };

  it("carry WebSockets to a program inside", { timeout: TIMEOUT_MS }, async () => {
    const id = await client.create({ ports: [{ port: PORT }] });
    const library = dirname(fileURLToPath(import.meta.resolve("ws/package.json")));
    await put(id, "ws.tar", new Uint8Array(execFileSync("tar", ["-C", dirname(library), "-cf", "-", "ws"])));
    await put(id, "node?mode=0755", new Uint8Array(readFileSync(process.execPath)));
    await put(id, "program.cjs", new TextEncoder().encode(PROGRAM));
    const start = "tar -xf ws.tar && (./node program.cjs >program.log 2>&1 &) && sleep 0.1";
    expect(await client.exec(id, start)).toMatchObject({ exitCode: 0 });
    const url = `${server.url.replace("http", "ws")}/api/v1/sandboxes/${id}/ports/${PORT}/chat?a=b`;
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
