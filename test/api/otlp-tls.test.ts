import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { status as STATUS } from "@grpc/grpc-js";
import { freePort } from "../../src/core/waiting.test-kit.ts";
import { fixed64, len, request, text } from "../../src/format/otlp/wire.test-kit.ts";
import { failureOfCall, rawClient } from "../../src/io/grpc/grpc-client.test-kit.ts";
import { certificateFolder, makeCertificate, trustCertificate } from "../../src/io/http/tls.test-kit.ts";
import { rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** OTLP over gRPC has the certificate of the HTTP port, and speaks nothing else then. */
const EXPORT = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const BODY = request(Buffer.concat([fixed64(1, 1_767_323_045_000_000_000n), len(5, text("over TLS"))]));

let engine: Engine;
let address: string;
let certificate: string;
let remove: () => Promise<void>;

beforeAll(async () => {
  const files = await makeCertificate(certificateFolder(), "otlp");
  certificate = readFileSync(files.certPath, "utf8");
  trustCertificate(certificate);
  const place = await temporaryHome();
  remove = place.remove;
  address = `127.0.0.1:${await freePort()}`;
  const env = { ENGINE_OTLP_ADDR: address, ENGINE_TLS_CERT: files.certPath, ENGINE_TLS_KEY: files.keyPath };
  engine = await startEngine({ home: place.home, env });
}, 120_000);
afterAll(async () => {
  await engine.stop();
  await remove();
});

test("logs come in over TLS, and not without", async () => {
  const plain = rawClient(address);
  const failure = await failureOfCall(plain.unary(EXPORT, BODY, { deadlineMs: 20_000 }));
  expect([STATUS.UNAVAILABLE, STATUS.DEADLINE_EXCEEDED]).toContain(failure.code);
  plain.close();
  const client = rawClient(address, certificate);
  expect((await client.unary(EXPORT, BODY, { deadlineMs: 60_000 })).length).toBe(0);
  client.close();
  const url = engine.url.replace("http:", "https:");
  expect(await rowsOf(url, "SELECT body FROM otel_logs")).toEqual([{ body: "over TLS" }]);
});
