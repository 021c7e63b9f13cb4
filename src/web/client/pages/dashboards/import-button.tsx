import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { toast } from "../../base/announce.ts";
import { ApiError } from "../../base/api-error.ts";
import { useMutation } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { createDashboard, saveDashboard } from "./dashboard-api.ts";
import { importedFile, type Dashboard, type ImportedFile } from "./document.ts";

/** What a file does not have its dashboard does not have either, as with `engine dashboards import`. */
const EMPTY = { description: null, panels: [], settings: {} };

/** Makes a dashboard of a file. Where one has the id of the file already, it asks whether to replace it. */
export function ImportButton({ onImported }: { onImported: (made: Dashboard) => void }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const [known, setKnown] = useState<ImportedFile | undefined>();
  const [isFailed, setFailed] = useState(false);
  const done = (made: Dashboard): void => {
    setKnown(undefined);
    toast(`${made.name} is imported`, "good");
    onImported(made);
  };
  const read = useMutation(async (chosen: File) => {
    const file = importedFile(await chosen.text());
    try {
      return await createDashboard({ ...(file.id !== undefined && { id: file.id }), ...file.content });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "conflict" || file.id === undefined) throw error;
      setKnown(file);
      return undefined;
    }
  });
  const keep = useMutation(async ({ file, isCopy }: { file: ImportedFile; isCopy: boolean }) =>
    isCopy || file.id === undefined
      ? await createDashboard(file.content)
      : await saveDashboard(file.id, { ...EMPTY, ...file.content }),
  );
  const error = read.error ?? keep.error;
  const finish = async (file: ImportedFile, isCopy: boolean): Promise<void> => {
    const made = await keep.run({ file, isCopy });
    if (made === undefined) setFailed(true);
    else done(made);
  };
  const choose = async (chosen: File): Promise<void> => {
    setFailed(false);
    keep.reset();
    const made = await read.run(chosen);
    // The same file can be chosen again.
    if (input.current !== null) input.current.value = "";
    if (made === undefined) setFailed(true);
    else done(made);
  };
  return (
    <>
      <input
        ref={input}
        type="file"
        class="unseen"
        accept=".json,application/json"
        aria-label="File of a dashboard"
        tabIndex={-1}
        onChange={(event) => {
          const [chosen] = event.currentTarget.files ?? [];
          if (chosen !== undefined) void choose(chosen);
        }}
      />
      <Button needs="write" isBusy={read.isPending} onClick={() => input.current?.click()}>
        Import
      </Button>
      {isFailed && error !== null && (
        <Dialog title="The file was not imported" onClose={() => setFailed(false)}>
          <ErrorBox error={error} />
        </Dialog>
      )}
      {known !== undefined && !(isFailed && error !== null) && (
        <Dialog
          title="This dashboard is here already"
          onClose={() => setKnown(undefined)}
          actions={
            <>
              <Button isBusy={keep.isPending} onClick={() => void finish(known, true)}>
                Import as a copy
              </Button>
              <Button look="danger" isBusy={keep.isPending} onClick={() => void finish(known, false)}>
                Replace it
              </Button>
            </>
          }
        >
          <p>
            A dashboard has the id of <strong>{known.name === "" ? "the file" : known.name}</strong>. If it is replaced,
            what it is now stays among its versions.
          </p>
        </Dialog>
      )}
    </>
  );
}
