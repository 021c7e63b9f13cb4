import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { connectionLimit } from "./connection-limit.ts";

test.skipIf(process.platform !== "linux")("the servers of a process share half of the files that it may open", () => {
  const files = Number(/^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1]);
  const [http, grpc] = [connectionLimit("http") ?? 0, connectionLimit("grpc") ?? 0];
  expect(http + 2 * grpc).toBeLessThanOrEqual(files / 2);
  expect(http + 2 * grpc).toBeGreaterThan(files / 2 - 3);
  expect(http).toBeGreaterThan(grpc);
});
