// A diff as git prints it, in parts that can be drawn: pure.

const RENAMED = /^rename (?:from|to) /;
const unquoted = (text) => (text[0] === '"' ? text.slice(1, -1).replace(/\\([t"\\])/g, (_, each) => (each === "t" ? "\t" : each)) : text);
const nameOf = (text) => unquoted(text.replace(/\t$/, "")).replace(/^b\//, "");

// Returns [{path, oldPath, lines: [{kind, text, old, new}], binary}]; kind is add, del, same, hunk or note.
export function parseDiff(text) {
  const files = [];
  let file = null, before = 0, after = 0, left = 0, right = 0;
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    if (file !== null && (left > 0 || right > 0)) {
      const sign = line[0];
      if (sign === "+") file.lines.push({kind: "add", text: line.slice(1), new: after++}), right--;
      else if (sign === "-") file.lines.push({kind: "del", text: line.slice(1), old: before++}), left--;
      else if (sign === "\\") file.lines.push({kind: "note", text: line.slice(2)});
      else file.lines.push({kind: "same", text: line.slice(1), old: before++, new: after++}), left--, right--;
      continue;
    }
    if (line.startsWith("diff --git ")) {
      const names = line.slice(11); // twice the same name, unless a line below says that it was renamed
      file = {path: nameOf(names.slice((names.length + 1) / 2)), oldPath: "", lines: [], binary: false};
      files.push(file);
    } else if (file === null) continue;
    else if (line.startsWith("+++ ") && line !== "+++ /dev/null") file.path = nameOf(line.slice(4));
    else if (RENAMED.test(line)) file[line[7] === "f" ? "oldPath" : "path"] = unquoted(line.replace(RENAMED, ""));
    else if (line.startsWith("Binary files ")) file.binary = true;
    else if (line.startsWith("\\")) file.lines.push({kind: "note", text: line.slice(2)});
    else {
      const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/.exec(line);
      if (!hunk) continue;
      before = Number(hunk[1]);
      left = Number(hunk[2] ?? 1);
      after = Number(hunk[3]);
      right = Number(hunk[4] ?? 1);
      file.lines.push({kind: "hunk", text: line});
    }
  }
  return files;
}

// Returns the rows of files, a head before the lines of each: what a windowed list draws.
export const diffRows = (files) => files.flatMap((file) => [{kind: "file", file}, ...(file.binary ? [{kind: "note", text: "a binary file"}] : file.lines)]);
