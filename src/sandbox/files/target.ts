/** Where the files of a machine are to be had. */
export type FilesTarget =
  | {
      kind: "live";
      /** Of the machine's first process, on the host; running or frozen. */
      pid: number;
    }
  | {
      kind: "mounted";
      /** Where the root of a stopped machine is mounted on the host. */
      root: string;
      /** The host's id that is root in there: 65,536 from it on are the machine's. */
      firstHostId: number;
      /** Paths inside that a running machine covers with what does not stay (`/tmp`, `/proc`): shown empty, read-only. */
      covered?: readonly string[];
      /** Called once, when no helper needs the root any more. */
      release(): Promise<void>;
    };
