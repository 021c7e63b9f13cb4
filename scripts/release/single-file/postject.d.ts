declare module "postject" {
  /** Writes the resource into the executable file, and sets its fuse. */
  export function inject(
    executable: string,
    name: string,
    resource: Buffer,
    options: { sentinelFuse: string },
  ): Promise<void>;
}
