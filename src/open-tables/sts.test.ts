import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../core/clock.ts";
import { assumeRoleAt } from "./sts.ts";

test("keys are not asked for without TLS where that is forbidden, whoever named the endpoint", async () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests++;
    response.writeHead(403).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: "key", secretAccessKey: "secret" };
  const ask = async (given: { endpoint: string | undefined; allowHttp: boolean }) => {
    const service = { roleArn: "arn:aws:iam::123456789012:role/readers", region: "us-east-1", credentials, ...given };
    return await assumeRoleAt(service, systemClock)({ name: "n", policy: "{}", seconds: 3_600 });
  };
  await expect(ask({ endpoint, allowHttp: false })).rejects.toThrow("ENGINE_OBJSTORE_ALLOW_HTTP=false forbids");
  vi.stubEnv("AWS_ENDPOINT_URL_STS", endpoint);
  onTestFinished(() => void vi.unstubAllEnvs());
  await expect(ask({ endpoint: undefined, allowHttp: false })).rejects.toThrow("forbids");
  expect(requests).toBe(0);
  // So the variable does name the endpoint.
  await expect(ask({ endpoint: undefined, allowHttp: true })).rejects.toMatchObject({
    $metadata: { httpStatusCode: 403 },
  });
  expect(requests).toBeGreaterThan(0);
});
