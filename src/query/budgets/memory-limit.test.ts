import { expect, test } from "vitest";
import { availableMemoryBytes } from "./memory-limit.ts";

const GIB = 2 ** 30;
const MACHINE = 64 * GIB;
const UNLIMITED_V1 = "9223372036854771712\n";

const limitOf = (files: Record<string, string>): number => availableMemoryBytes((path) => files[path], MACHINE);

test.each<[string, number, Record<string, string>]>([
  ["no control groups at all", MACHINE, {}],
  ["version 2 without a limit", MACHINE, { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" }],
  [
    "version 2 in a container, whose own group is the root of what it sees",
    2 * GIB,
    { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": `${2 * GIB}\n` },
  ],
  [
    "version 2, the smallest limit above the group",
    3 * GIB,
    {
      "/proc/self/cgroup": "0::/system.slice/engine.service/worker\n",
      "/sys/fs/cgroup/system.slice/engine.service/worker/memory.max": "max\n",
      "/sys/fs/cgroup/system.slice/engine.service/memory.max": `${4 * GIB}\n`,
      "/sys/fs/cgroup/system.slice/memory.max": `${3 * GIB}\n`,
    },
  ],
  [
    "version 1, among the other controllers",
    GIB,
    {
      "/proc/self/cgroup": "9:name=systemd:/\n4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n",
      "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": `${GIB}\n`,
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
    },
  ],
  [
    "version 1, where the container sees its own group as the root",
    GIB,
    {
      "/proc/self/cgroup": "11:memory:/kubepods/pod1/abc\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": `${GIB}\n`,
    },
  ],
  [
    "version 1 without a limit, which is a very large number",
    MACHINE,
    { "/proc/self/cgroup": "4:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1 },
  ],
  ["a path with a colon", GIB, { "/proc/self/cgroup": "0::/a:b\n", "/sys/fs/cgroup/a:b/memory.max": String(GIB) }],
  ["a group above the namespace", MACHINE, { "/proc/self/cgroup": "0::/../other\n" }],
  ["nonsense", MACHINE, { "/proc/self/cgroup": "nonsense\n\n0::/x\n", "/sys/fs/cgroup/x/memory.max": "many" }],
])("%s", (_name, bytes, files) => {
  expect(limitOf(files)).toBe(bytes);
});

test("this machine has some memory", () => {
  expect(availableMemoryBytes()).toBeGreaterThan(100 * 2 ** 20);
});
