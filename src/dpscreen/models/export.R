.text <- function(x) trimws(as.character(x), whitespace = "[ \t\r\n\v\f]")

.number <- function(x, plain = TRUE, gone = c()) {
  if (is.numeric(x) || is.logical(x)) n <- as.numeric(x)
  else if (!plain) stop("numbers with signs other than a decimal point must be read before")
  else {
    t <- .text(x)
    n <- rep(NA_real_, length(t))
    ok <- grepl("^@NUMBER@$", t)
    n[ok] <- as.numeric(t[ok])
    n[t %in% c(@TRUE@)] <- 1
    n[t %in% c(@FALSE@)] <- 0
  }
  n[!is.finite(n) | n %in% gone] <- NA
  n
}

.fill <- function(x, missing) ifelse(is.na(x), missing, x)

.day <- function(x, form, pattern, gone = c()) {
  if (inherits(x, "Date")) d <- floor(as.numeric(x))
  else if (inherits(x, "POSIXt")) d <- as.numeric(as.Date(format(x, "%Y-%m-%d")))
  else {
    t <- .text(x)
    d <- as.numeric(as.Date(ifelse(grepl(pattern, t), t, NA_character_), format = form))
  }
  d[d %in% gone] <- NA
  d
}

.part <- function(d, part) {
  p <- as.POSIXlt(as.Date(d, origin = "1970-01-01"))
  switch(part, days = d, weekday = (d + 3) %% 7 + 1, month = p$mon + 1, year = p$year + 1900)
}

.pick_part <- function(p, numbers, adds, missing) {
  found <- adds[match(p, numbers)]
  ifelse(is.na(found), missing, found)
}

.pick <- function(x, n, words, adds, numbers, number_adds, gone, gone_numbers, missing,
                  otherwise, numeric) {
  t <- .text(x)
  found <- adds[match(t, words)]
  by_number <- number_adds[match(n, numbers)]
  found[is.na(found)] <- by_number[is.na(found)]
  none <- is.na(x) | t %in% gone | n %in% gone_numbers | (numeric & is.na(n))
  ifelse(none, missing, ifelse(is.na(found), otherwise, found))
}
