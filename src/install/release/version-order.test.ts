import { expect, test } from "vitest";
import { compareVersions } from "./version-order.ts";

test("versions are in the order of Semantic Versioning", () => {
  const ordered = ["0.9.9", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta"];
  ordered.push(
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc-1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "10.0.0",
  );
  for (const [i, a] of ordered.entries()) {
    for (const [j, b] of ordered.entries())
      expect([a, b, Math.sign(compareVersions(a, b))]).toEqual([a, b, Math.sign(i - j)]);
  }
});
