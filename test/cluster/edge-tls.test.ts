import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, beforeAll, expect, test } from "vitest";
import { certificateFolder, makeCertificate } from "../../src/io/http/tls.test-kit.ts";
import type { TlsFiles } from "../../src/io/http/tls.ts";
import { ingest, query } from "../support/client.ts";
import { defer, metricsOf, startEdge, stopAll, usablePeers } from "./edge.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** An edge whose peers speak TLS with a certificate that an authority of ours has signed. */
let authority: TlsFiles;
let peer: TlsFiles;

beforeAll(async () => {
  const folder = certificateFolder();
  authority = await makeCertificate(folder, "root", { names: ["DNS:authority.test"] });
  peer = await makeCertificate(folder, "peer", { names: ["DNS:localhost"], authority });
});
afterEach(stopAll);

/** Answers with what it was asked, over TLS; resolves to its port. */
async function startTlsPeer(): Promise<number> {
  const [key, cert] = [readFileSync(peer.keyPath), readFileSync(peer.certPath)];
  const server = createServer({ key, cert }, (message, response) => {
    if (message.url === "/health") return void response.end();
    let body = "";
    message.on("data", (piece) => (body += String(piece)));
    message.on("end", () => response.end(JSON.stringify({ url: message.url, host: message.headers.host, body })));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  defer(async () => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test("an edge forwards to https peers whose authority NODE_EXTRA_CA_CERTS names", async () => {
  const port = await startTlsPeer();
  const edge = await startEdge([`https://localhost:${port}`], { NODE_EXTRA_CA_CERTS: authority.certPath });
  const body = '{"body":"sealed"}\n';
  const answer = await ingest(edge.url, "t", body);
  expect(answer.status).toBe(200);
  // The name, not the address, is what the certificate and the peer see.
  expect(JSON.parse(answer.text)).toEqual({ url: "/v1/ingest", host: `localhost:${port}`, body });
  expect((await query(edge.url, "SELECT 1")).status).toBe(200);
  expect(await usablePeers(edge)).toBe(2);
  expect(await metricsOf(edge)).toMatch(
    new RegExp(`^engine_edge_bytes_total\\{upstream="ingest",direction="out"\\} ${body.length}$`, "m"),
  );
});

test.each([
  ["an authority that it does not know", "localhost", () => ({}), "unable to verify the first certificate"],
  [
    "a certificate for another name",
    "127.0.0.1",
    () => ({ NODE_EXTRA_CA_CERTS: authority.certPath }),
    "IP: 127.0.0.1 is not in the cert's list",
  ],
])("an edge sends nothing to %s, and its log says why", async (_what, host, env, why) => {
  const edge = await startEdge([`https://${host}:${await startTlsPeer()}`], env());
  const answer = await ingest(edge.url, "t", "{}\n");
  expect([answer.status, answer.json]).toMatchObject([503, { error: { code: "unavailable" } }]);
  await eventually(async () => (await usablePeers(edge)) === 0);
  expect(edge.log()).toContain(why);
});
