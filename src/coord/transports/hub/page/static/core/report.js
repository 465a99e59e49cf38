// A report is the page with the log of a run in one file. It has no hub: `static_report/` answers what the page asks for.

let report = null; // {answer(path), run(context), entries}

export const isReport = () => report !== null;
export const reportOf = () => report;
export const use = (found) => {
  report = found;
};
