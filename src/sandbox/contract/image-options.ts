import * as kinds from "../../config/kinds.ts";
import { option } from "../../config/option.ts";
import { labelPairs } from "./option-kinds.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const TIB = 2 ** 40;

/** Options of images of sandboxes, and how they are built. */
export const IMAGE_OPTIONS = {
  sandboxImageBuilds: option({
    env: "ENGINE_SANDBOX_IMAGE_BUILDS",
    toml: "sandbox.image_builds",
    kind: kinds.integer({ min: 1, max: 64 }),
    default: 1,
    side: "SC",
    doc: "Images that a node builds at once; others wait. What they take comes on top of what it promises to sandboxes.",
  }),
  sandboxImageBuildCpus: option({
    env: "ENGINE_SANDBOX_IMAGE_BUILD_CPUS",
    toml: "sandbox.image_build_cpus",
    kind: kinds.integer({ min: 1, max: 256 }),
    default: 2,
    side: "SC",
    doc: "Most CPUs of an image build.",
  }),
  sandboxImageBuildMemoryBytes: option({
    env: "ENGINE_SANDBOX_IMAGE_BUILD_MEMORY_BYTES",
    toml: "sandbox.image_build_memory_bytes",
    kind: kinds.bytes({ min: 64 * MIB, max: TIB }),
    default: 2 * GIB,
    side: "SC",
    doc: "Most memory of an image build.",
  }),
  sandboxImageBuildDiskBytes: option({
    env: "ENGINE_SANDBOX_IMAGE_BUILD_DISK_BYTES",
    toml: "sandbox.image_build_disk_bytes",
    kind: kinds.bytes({ min: 64 * MIB, max: TIB }),
    default: 8 * GIB,
    side: "SC",
    doc: "Disk of an image build, and the most that its files may take.",
  }),
  sandboxImageBuildTimeoutSecs: option({
    env: "ENGINE_SANDBOX_IMAGE_BUILD_TIMEOUT_SECS",
    toml: "sandbox.image_build_timeout_secs",
    kind: kinds.integer({ min: 10, max: 86_400 }),
    default: 1_800,
    side: "SC",
    doc: "Seconds that the steps of an image build may take.",
  }),
  sandboxImageCacheBytes: option({
    env: "ENGINE_SANDBOX_IMAGE_CACHE_BYTES",
    toml: "sandbox.image_cache_bytes",
    kind: kinds.bytes({ min: 64 * MIB, max: 1_024 * TIB }),
    default: 20 * GIB,
    side: "SC",
    doc:
      "Disk for the files of built images that a node keeps, beside what it promises to sandboxes. What no sandbox uses " +
      "goes first, the longest unused of it.",
  }),
  sandboxImagesPerTenant: option({
    env: "ENGINE_SANDBOX_IMAGES_PER_TENANT",
    toml: "sandbox.images_per_tenant",
    kind: kinds.integer({ min: 1, max: 10_000 }),
    default: 100,
    side: "S",
    doc: "Images and unfinished builds that one caller has at once. More are refused with `rate_limited`.",
  }),
  sandboxDefaultImages: option({
    env: "ENGINE_SANDBOX_DEFAULT_IMAGES",
    toml: "sandbox.default_images",
    kind: labelPairs,
    default: {},
    side: "S",
    doc:
      "Images of sandboxes that name none, by agent provider: `provider=image`, separated by commas. An image is one of " +
      "nodes, by its name, or a built one, by its id, whoever built it. Without one it is built from the provider's default " +
      "template, once, where nodes have its base (`debian`), and else the node's own (`host`).",
  }),
  sandboxDefaultRegion: option({
    env: "ENGINE_SANDBOX_DEFAULT_REGION",
    toml: "sandbox.default_region",
    kind: kinds.userName,
    default: "local",
    side: "S",
    doc: "Region of image builds that name none. Nodes with another label `region` do not build them.",
  }),
  sandboxDefaultInstanceType: option({
    env: "ENGINE_SANDBOX_DEFAULT_INSTANCE_TYPE",
    toml: "sandbox.default_instance_type",
    kind: kinds.userName,
    default: "standard",
    side: "S",
    doc: "Instance type of image builds that name none. Nodes with another label `instance_type` do not build them.",
  }),
} as const;
