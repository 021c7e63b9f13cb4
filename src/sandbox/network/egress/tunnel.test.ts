import { once } from "node:events";
import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { join } from "./tunnel.ts";

/** One end of a connection, which takes each piece after a while, as that of somebody slow does. */
class End extends Duplex {
  readonly taken: string[] = [];
  readonly #takesMs: number;

  constructor({ takesMs = 0 } = {}) {
    super();
    this.#takesMs = takesMs;
    this.on("error", () => {});
  }

  override _read(): void {}

  override _write(piece: Buffer, _encoding: string, done: () => void): void {
    setTimeout(() => {
      this.taken.push(piece.toString());
      done();
    }, this.#takesMs);
  }
}

describe("a tunnel", () => {
  it("ends when a client has all that the server said before its end", async () => {
    const [client, server] = [new End({ takesMs: 20 }), new End()];
    join(client, server);
    for (const piece of ["a", "b", "c"]) server.push(piece);
    server.push(null);
    server.end();
    await Promise.all([once(server, "close"), once(client, "close")]);
    expect(client.taken).toEqual(["a", "b", "c"]);
  });

  it("gives a server all that a client said before its end, and the client the answer", async () => {
    const [client, server] = [new End(), new End({ takesMs: 20 })];
    join(client, server);
    client.push("a question");
    client.push(null);
    await once(server, "finish");
    expect(server.taken).toEqual(["a question"]);
    server.push("an answer");
    server.push(null);
    await once(client, "close");
    expect(client.taken).toEqual(["an answer"]);
  });

  it.each(["client", "server"])("breaks off when the %s does", async (which) => {
    const ends = { client: new End(), server: new End() };
    join(ends.client, ends.server);
    ends.server.push("a beginning");
    (which === "client" ? ends.client : ends.server).destroy(new Error("it broke"));
    await Promise.all([once(ends.client, "close"), once(ends.server, "close")].map((closed) => closed.catch(() => {})));
    expect([ends.client.destroyed, ends.server.destroyed]).toEqual([true, true]);
    expect(ends.client.writableFinished).toBe(false);
  });
});
