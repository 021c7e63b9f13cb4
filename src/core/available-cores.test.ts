import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { availableCores } from "./available-cores.ts";
import { lacks } from "./gates.test-kit.ts";

const CORES = 16;

test.each<[string, number, Record<string, string>]>([
  ["no control groups at all", CORES, {}],
  ["version 2 without a limit", CORES, { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n" }],
  [
    "version 2 in a container, whose own group is the root of what it sees",
    1,
    { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "100000 100000\n" },
  ],
  ["a part of a core is one", 1, { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "10000 100000\n" }],
  ["a core and a half are two", 2, { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "75000 50000\n" }],
  [
    "version 2, the smallest limit above the group",
    3,
    {
      "/proc/self/cgroup": "0::/system.slice/engine.service\n",
      "/sys/fs/cgroup/system.slice/engine.service/cpu.max": "max 100000\n",
      "/sys/fs/cgroup/system.slice/cpu.max": "300000 100000\n",
    },
  ],
  [
    "version 1, by the link of the controller's own name",
    4,
    {
      "/proc/self/cgroup": "2:cpu,cpuacct:/docker/abc\n",
      "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "400000\n",
      "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    },
  ],
  [
    "version 1 without that link, in a container that sees its own group as the root",
    2,
    {
      "/proc/self/cgroup": "2:cpu,cpuacct:/kubepods/abc\n0::/\n",
      "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
      "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    },
  ],
  ["a quota above the machine", CORES, { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "9900000 100000" }],
  ["the cpuset of version 1 is no quota", CORES, { "/proc/self/cgroup": "2:cpuset:/x\n" }],
  ["nonsense", CORES, { "/proc/self/cgroup": "nonsense\n\n0::/x\n", "/sys/fs/cgroup/x/cpu.max": "0 many" }],
  ["a period of nothing", CORES, { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "100000 0" }],
  ["an empty file", CORES, { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "" }],
])("%s", (_name, cores, files) => {
  expect(availableCores((path) => files[path], CORES)).toBe(cores);
});

/** Where a group of its own is made, by the version that is mounted. */
const V1 = "/sys/fs/cgroup/cpu";

describe.skipIf(lacks("mounts"))("a real control group", () => {
  test("a process under a quota of one core counts one", () => {
    const isV1 = existsSync(`${V1}/cpu.cfs_quota_us`);
    const folder = `${isV1 ? V1 : "/sys/fs/cgroup"}/engine-cores-${process.pid}`;
    mkdirSync(folder);
    try {
      if (isV1) writeFileSync(`${folder}/cpu.cfs_quota_us`, "100000");
      else {
        writeFileSync("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
        writeFileSync(`${folder}/cpu.max`, "100000 100000");
      }
      const module = new URL("./available-cores.ts", import.meta.url).href;
      const script = `import("${module}").then(({ availableCores }) => console.log(availableCores()))`;
      // bounded: one process that prints a number, and its time
      const enter = `echo $$ > ${folder}/cgroup.procs && exec "$0" -e '${script}'`;
      const { stdout, stderr } = spawnSync("/bin/sh", ["-c", enter, process.execPath], {
        encoding: "utf8",
        timeout: 60_000,
      });
      expect({ stdout, stderr }).toMatchObject({ stdout: "1\n" });
    } finally {
      rmdirSync(folder);
    }
  });
});
