/** Where the files of a machine are to be had. `joins`: files to each of which a helper writes `0`, to be limited. */
export type FilesTarget = { joins?: readonly string[] } & (
  | {
      kind: "live";
      /** Of the machine's first process, on the host; running or frozen. */
      pid: number;
    }
  | {
      kind: "mounted";
      /** Where the root of a machine is mounted on the host that is stopped, or cannot be entered. */
      root: string;
      /** What stands for the machine while it runs: with that the helpers end. */
      pid?: number;
      /** Folders of the host that are mounted in there. */
      volumes?: readonly { path: string; mountPath: string; readOnly: boolean }[];
      /** The host's id that is root in there: 65,536 from it on are the machine's. */
      firstHostId: number;
      /** Paths inside that a running machine covers with what does not stay (`/tmp`, `/proc`): shown empty, read-only. */
      covered?: readonly string[];
      /** Called once, when no helper needs the root any more. */
      release(): Promise<void>;
    }
);
