// The colours that a person chose, before anything is painted.
{
  const chosen = localStorage.getItem("fairlead-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
